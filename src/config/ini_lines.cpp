#include "ini_lines.hpp"

#include <algorithm>
#include <sstream>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/base/text.hpp>
#include <lamina/config/command_line.hpp>

#include <boost/program_options.hpp>
#include <fmt/format.h>

namespace lamina::detail {

namespace {

namespace po = boost::program_options;
constexpr std::string_view blanks = " \t\r\n";

[[noreturn]] void refuse(const std::string& file, std::size_t line, std::string_view problem, std::string_view why,
                         std::string_view fix) {
  throw UsageError(one_line(fmt::format("{}:{}: {}", file, line, problem), why, fix));
}

void check_section(std::string_view name, const std::string& file, std::size_t line) {
  std::vector<std::string> names;
  for (const ConfigOption& option : config_options()) names.push_back(option.section);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const std::string nearest = nearest_name(name, names);
  refuse(file, line, fmt::format("unknown section [{}]", name), "no option belongs to it",
         nearest.empty() ? "see --help" : fmt::format("did you mean [{}]?", nearest));
}

// The numbers of the lines that hold an entry, which are the entries that Boost's reader returns, in the same order.
std::vector<std::size_t> entry_lines(std::string_view text, const std::string& file) {
  std::vector<std::size_t> lines;
  bool in_section = false;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t comment = whole.find('#');
    if (comment != std::string_view::npos && comment > 0 && blanks.find(whole[comment - 1]) == std::string_view::npos) {
      refuse(file, number, "a '#' inside a value", "it would begin a comment and cut the value",
             "put a space before a comment; a value cannot contain '#'");
    }
    const std::string_view line = trim(whole.substr(0, comment), blanks);
    if (line.empty()) continue;
    if (line.front() == '[') {
      if (line.back() != ']')
        refuse(file, number, fmt::format("cannot read '{}'", line), "a section ends in ]", "write [name]");
      check_section(line.substr(1, line.size() - 2), file, number);
      in_section = true;
      continue;
    }
    if (line.find('=') == std::string_view::npos) {
      refuse(file, number, fmt::format("cannot read '{}'", line), "it is neither [section] nor key = value",
             "write key = value");
    }
    if (!in_section)
      refuse(file, number, fmt::format("'{}' is in no section", line), "keys belong to sections",
             "write [section] above it");
    lines.push_back(number);
  }
  return lines;
}

}  // namespace

std::vector<IniEntry> read_ini(std::string_view text, const std::string& file) {
  if (text.find('\0') != std::string_view::npos) {
    throw UsageError(one_line(fmt::format("cannot read {}", file), "it is not a text file", "name a config file"));
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::vector<std::size_t> lines = entry_lines(text, file);
  std::istringstream in{std::string(text)};
  constexpr bool unknown_keys_too = true;  // they are refused with their line and the nearest name
  const po::parsed_options parsed = po::parse_config_file(in, po::options_description{}, unknown_keys_too);
  require(parsed.options.size() == lines.size(), "one entry for each line that holds one");
  std::vector<IniEntry> entries;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    entries.push_back({parsed.options[i].string_key, parsed.options[i].value.at(0), lines[i]});
  }
  return entries;
}

}  // namespace lamina::detail
