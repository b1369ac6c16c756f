// Text for people: sizes, durations, and the name somebody probably meant.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lamina {

// "0 B", "1.5 KiB", "2.25 GiB".
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);
// "4.2 s", "3 min 05 s", "2 h 07 min".
[[nodiscard]] std::string human_seconds(double seconds);
// The candidate with the smallest edit distance to `name`, or empty when none is close enough to be a likely slip.
[[nodiscard]] std::string nearest_name(std::string_view name, std::span<const std::string> candidates);
// Without the `blanks` at both ends. A view of `text`.
[[nodiscard]] std::string_view trim(std::string_view text, std::string_view blanks = " \t");

}  // namespace lamina
