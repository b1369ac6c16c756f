#include <algorithm>

#include <lamina/base/error.hpp>
#include <lamina/config/parameter_groups.hpp>
#include <lamina/config/parse_value.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr const char* notation = "write groups as PATTERN:lr=X:decay=Y, PATTERN:decay=Y, ...";

[[noreturn]] void refuse(std::string_view group, std::string_view why) {
  throw UsageError(one_line(fmt::format("optim.groups: cannot use '{}'", group), why, notation));
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t end = text.find(separator);
    out.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

void take_setting(ParameterGroup& group, std::string_view setting, std::string_view whole) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) refuse(whole, fmt::format("'{}' is not KEY=NUMBER", setting));
  const std::string_view key = trimmed(setting.substr(0, equals));
  if (key != "lr" && key != "decay") refuse(whole, fmt::format("a group has lr and decay, not '{}'", key));
  std::optional<double>& value = key == "lr" ? group.lr_factor : group.weight_decay;
  if (value) refuse(whole, fmt::format("it sets {} twice", key));
  value = parse_number(trimmed(setting.substr(equals + 1)), fmt::format("optim.groups: {} of '{}'", key, whole));
  if (*value < 0) refuse(whole, fmt::format("{} is below 0", key));
}

ParameterGroup parse_group(std::string_view text) {
  const std::vector<std::string_view> parts = pieces(text, ':');
  ParameterGroup group;
  group.pattern = parts.front();
  if (group.pattern.empty()) refuse(text, "it has no pattern");
  if (group.pattern.find_first_of("= ") != std::string::npos) refuse(text, "the pattern comes first");
  if (parts.size() == 1) refuse(text, "it sets neither lr nor decay");
  for (std::size_t i = 1; i < parts.size(); ++i) take_setting(group, parts[i], text);
  return group;
}

}  // namespace

std::vector<ParameterGroup> parse_parameter_groups(std::string_view text) {
  std::vector<ParameterGroup> groups;
  if (trimmed(text).empty()) return groups;
  for (const std::string_view piece : pieces(text, ',')) {
    ParameterGroup group = parse_group(piece);
    const auto same = [&](const ParameterGroup& other) { return other.pattern == group.pattern; };
    if (std::ranges::any_of(groups, same)) refuse(piece, "the pattern is there twice");
    groups.push_back(std::move(group));
  }
  return groups;
}

// Greedy with one point of return: the latest star takes one character more whenever what follows does not fit.
bool matches_pattern(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace lamina
