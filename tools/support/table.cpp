#include "support/table.hpp"

#include <algorithm>

#include <lamina/base/check.hpp>

#include <fmt/format.h>

namespace lamina {

Table::Table(std::vector<std::string> titles) {
  for (std::string& title : titles) {
    right_.push_back(title.ends_with('>'));
    if (right_.back()) title.pop_back();
  }
  rows_.push_back(std::move(titles));
}

void Table::add(std::vector<std::string> cells) {
  require(cells.size() == right_.size(), "Table: one cell for each title");
  for (std::string& cell : cells) {  // names from files may hold terminal escapes
    std::replace_if(
        cell.begin(), cell.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  }
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(right_.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += right_[i] ? fmt::format("{:>{}}", row[i], widths[i]) : fmt::format("{:<{}}", row[i], widths[i]);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace lamina
