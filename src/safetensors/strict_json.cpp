#include "strict_json.hpp"

#include <unordered_set>
#include <vector>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

using nlohmann::json;

// Sees every key before it is stored: an object's later value would silently replace the earlier one.
class KeyWatch {
 public:
  KeyWatch(int deepest, const std::string& where) : deepest_(deepest), where_(where) {}

  void see(int depth, json::parse_event_t event, const json& value) {
    if (depth > deepest_) refuse("its values are nested too deeply");
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.back().insert(value.get_ref<const std::string&>()).second) {
      refuse(fmt::format("the key \"{}\" is there twice", value.get_ref<const std::string&>()));
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw DataError(one_line(fmt::format("cannot use {}", where_), why));
  }

  int deepest_;
  const std::string& where_;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace

json parse_strict_json(std::string_view text, int deepest, const std::string& where) {
  KeyWatch watch(deepest, where);
  try {
    return json::parse(text, [&](int depth, json::parse_event_t event, json& value) {
      watch.see(depth, event, value);
      return true;
    });
  } catch (const json::exception& error) {
    // nlohmann quotes the offending text: that may be long and hold anything, so only its own words before it are kept.
    const std::string what = error.what();
    throw DataError(one_line(fmt::format("cannot use {}", where),
                             fmt::format("its JSON is broken ({})", what.substr(0, what.find("; last read")))));
  }
}

}  // namespace lamina
