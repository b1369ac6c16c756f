#include "json_line.hpp"

#include <algorithm>
#include <set>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina::detail {

namespace {

using json = Json;

// Refuses keys given twice in any object: which of the two counts is nobody's guess.
class DuplicateGuard {
 public:
  bool operator()(int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second) {
      if (duplicate_.empty()) duplicate_ = parsed.get<std::string>();
    }
    return true;
  }
  [[nodiscard]] const std::string& duplicate() const { return duplicate_; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string duplicate_;
};

}  // namespace

Json parse_json_line(std::string_view line, const std::string& place) {
  Json value;
  DuplicateGuard guard;
  try {
    value = Json::parse(line, std::ref(guard));
  } catch (const Json::parse_error& error) {
    throw DataError(one_line(fmt::format("{}: not JSON at byte {} of the line", place, error.byte),
                             "each line of a .jsonl file is one JSON object", "repair the line"));
  }
  if (!guard.duplicate().empty()) {
    throw DataError(one_line(fmt::format("{}: key '{}' is given twice", place, guard.duplicate()),
                             "one of them would be lost", "repair the line"));
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
