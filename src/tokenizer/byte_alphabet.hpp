// GPT-2's byte alphabet: a printable character for each of the 256 bytes, so that byte strings can be written as text.
// (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, released encoder.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lamina::byte_alphabet {

// The character of one byte, as UTF-8.
[[nodiscard]] const std::string& character(unsigned char byte);
// The bytes that `token` spells, or nothing when one of its characters is not in the alphabet. `token` is valid UTF-8.
[[nodiscard]] std::optional<std::string> bytes_of(std::string_view token);

}  // namespace lamina::byte_alphabet
