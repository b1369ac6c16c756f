#include "json_line.hpp"

#include <algorithm>

#include <lamina/base/error.hpp>
#include <lamina/base/json.hpp>

#include <fmt/format.h>

namespace lamina::detail {

Json parse_json_line(std::string_view line, const std::string& place) {
  Json value;
  try {
    value = parse_ordered_json(line);
  } catch (const JsonFault& fault) {
    const std::string_view fix = fault.fix().empty() ? std::string_view("repair the line") : fault.fix();
    if (fault.byte() == 0) throw DataError(one_line(fmt::format("{}: {}", place, fault.what()), "", fix));
    throw DataError(
        one_line(fmt::format("{}: not JSON at byte {} of the line", place, fault.byte()), fault.what(), fix));
  }
  if (!value.is_object()) {
    throw DataError(one_line(fmt::format("{}: not a JSON object", place),
                             "each line of a .jsonl file is one JSON object", "repair the line"));
  }
  return value;
}

const std::string& text_at(const Json& object, const char* key, const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    throw DataError(one_line(fmt::format("{}: {} '{}'", place, found == object.end() ? "no key" : "no text at", key),
                             "it is needed", "repair the line"));
  }
  return found->get_ref<const std::string&>();
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\n") == std::string_view::npos; }

void for_each_line(std::string_view text, const std::function<void(std::string_view, std::size_t)>& take) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!is_blank(line)) take(line, number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace lamina::detail
