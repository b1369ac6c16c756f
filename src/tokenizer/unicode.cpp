#include "unicode_tables.hpp"

#include <algorithm>

#include <utf8proc.h>

namespace lamina::unicode {

namespace {

bool contains(std::span<const CodeRange> ranges, char32_t code) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                      [](char32_t value, const CodeRange& range) { return value < range.first; });
  return after != ranges.begin() && code <= std::prev(after)->last;
}

}  // namespace

bool is_white_space(char32_t code) {
  if (code < 0x80) return code == 0x20 || (code >= 0x09 && code <= 0x0D);
  return contains(white_space, code);
}

bool is_numeric(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  return contains(numeric_table(), code);
}

bool is_punctuation(char32_t code) { return contains(punctuation_table(), code); }
bool is_word(char32_t code) { return contains(word_table(), code); }
bool is_inert(char32_t code) { return code >= 0x300 && contains(inert_table(), code); }

char32_t to_lower(char32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  const auto pairs = lower_table();
  const auto found = std::lower_bound(pairs.begin(), pairs.end(), code,
                                      [](const CodeRange& pair, char32_t value) { return pair.first < value; });
  if (found != pairs.end() && found->first == code) return found->last;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

}  // namespace lamina::unicode
