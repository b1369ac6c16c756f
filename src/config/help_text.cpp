#include "help_text.hpp"

#include <algorithm>

namespace lamina::detail {

namespace {
constexpr std::size_t line_width = 100;
constexpr std::size_t widest_name = 30;  // a longer name puts its explanation on the next line
}  // namespace

std::string wrap(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column > indent && column + 1 + end > line_width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string examples_text(std::span<const std::string> examples) {
  std::string out = examples.empty() ? "" : "Examples:\n";
  for (const std::string& example : examples) out += "  " + example + '\n';
  return examples.empty() ? out : out + '\n';
}

std::string help_rows(std::span<const HelpRow> rows) {
  std::size_t width = 0;
  for (const HelpRow& row : rows) {
    if (row.name.size() <= widest_name) width = std::max(width, row.name.size());
  }
  const std::size_t indent = width + 4;
  std::string out;
  for (const HelpRow& row : rows) {
    out += "  " + row.name;
    out += row.name.size() > width ? '\n' + std::string(indent, ' ') : std::string(indent - 2 - row.name.size(), ' ');
    out += wrap(row.text, indent) + '\n';
  }
  return out;
}

}  // namespace lamina::detail
