// Layout of help pages: two columns, wrapped for a terminal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace lamina::detail {

struct HelpRow {
  std::string name;
  std::string text;
};

// `text` broken at spaces so that lines end before column 100; every line after the first is indented.
[[nodiscard]] std::string wrap(std::string_view text, std::size_t indent);
// "Examples:" and one indented line each, and an empty line; nothing for no examples.
[[nodiscard]] std::string examples_text(std::span<const std::string> examples);
// One row a name, explanations aligned.
[[nodiscard]] std::string help_rows(std::span<const HelpRow> rows);

}  // namespace lamina::detail
