// UTF-8 by the book: sequences, validity, replacement of what is not valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lamina::utf8 {

inline constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

enum class SequenceKind { valid, invalid, truncated };
struct Sequence {
  std::size_t size;  // bytes of the sequence, or of the maximal part of one (at least 1)
  SequenceKind kind;
};

// The sequence at the start of `text`, which is not empty. `truncated`: `text` ends where only more bytes could decide.
[[nodiscard]] Sequence next_sequence(std::string_view text);

// Size of the longest prefix that is valid UTF-8.
[[nodiscard]] std::size_t valid_prefix(std::string_view text);

// `text` with one U+FFFD for each maximal part of an ill-formed sequence (Python's errors="replace", WHATWG).
[[nodiscard]] std::string replace_invalid(std::string_view text);

struct Decoded {
  char32_t code;
  std::size_t size;
};
// First code point of valid, non-empty `text`.
[[nodiscard]] inline Decoded decode_first(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}
// Last code point of valid, non-empty `text`.
[[nodiscard]] Decoded decode_last(std::string_view text);

void append(std::string& out, char32_t code);

}  // namespace lamina::utf8
