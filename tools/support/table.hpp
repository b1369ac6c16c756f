// Aligned columns for people.
#pragma once

#include <string>
#include <vector>

namespace lamina {

class Table {
 public:
  explicit Table(std::vector<std::string> titles);
  // As many cells as there are titles.
  void add(std::vector<std::string> cells);
  // Titles, then rows, columns two blanks apart; a column of numbers (its title ends in '>', which is not shown) is
  // right-aligned.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> right_;
};

}  // namespace lamina
