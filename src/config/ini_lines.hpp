// What Boost.Program_options' reader of config files does not say or would pass over: lines, and slips in the notation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamina::detail {

struct IniEntry {
  std::string name;  // "section.key"
  std::string value;
  std::size_t line;  // from 1
};

// All entries in order. Throws UsageError naming `file` and line for anything that is not a section, an entry or a
// comment, and for what would be cut in silence (a `#` inside a value).
[[nodiscard]] std::vector<IniEntry> read_ini(std::string_view text, const std::string& file);

}  // namespace lamina::detail
