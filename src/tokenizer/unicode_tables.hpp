// Character facts as the `tokenizers` library sees them; the tables are written by
// tools/goldens/make_unicode_tables.py.
#pragma once

#include <span>
#include <string_view>

namespace lamina::unicode {

struct CodeRange {
  char32_t first, last;
};

// Members of a general category beyond those of Unicode 14 (a category that lost members since is not listed).
struct PropertyAdditions {
  std::string_view name;
  std::span<const CodeRange> ranges;
};
[[nodiscard]] std::span<const PropertyAdditions> property_additions();

[[nodiscard]] std::span<const CodeRange> numeric_table();
[[nodiscard]] std::span<const CodeRange> punctuation_table();
[[nodiscard]] std::span<const CodeRange> word_table();
[[nodiscard]] std::span<const CodeRange> inert_table();
[[nodiscard]] std::span<const CodeRange> lower_table();  // pairs (upper, lower)

[[nodiscard]] bool is_white_space(char32_t code);  // Unicode White_Space
[[nodiscard]] bool is_numeric(char32_t code);      // categories Nd, Nl, No
[[nodiscard]] bool is_punctuation(char32_t code);  // category P, and ASCII punctuation
[[nodiscard]] bool is_word(char32_t code);         // \w of Rust's regex
[[nodiscard]] bool is_inert(
    char32_t code);  // takes no part in normalisation there (assigned after its Unicode version)
[[nodiscard]] char32_t to_lower(char32_t code);  // simple mapping

inline constexpr CodeRange white_space[] = {{0x09, 0x0D},     {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                            {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                            {0x205F, 0x205F}, {0x3000, 0x3000}};

}  // namespace lamina::unicode
