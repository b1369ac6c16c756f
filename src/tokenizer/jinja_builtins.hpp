// The filters, tests and methods of Jinja's and Python's that chat templates use.
#pragma once

#include "jinja_value.hpp"

namespace lamina::jinja {

// Which parts of the request a template has looked at, and which reached its output.
struct Usage {
  std::vector<std::uint8_t> read, printed;
  std::vector<std::int64_t> owners;  // the message that a part belongs to; -1: none

  void mark_read(const Map& map, std::string_view key);
  void mark_all_read(const Value& value);
  void mark_printed(const Sources& sources);
};

// All throw TemplateError: for an unknown name, too.
[[nodiscard]] Value apply_filter(const std::string& name, const Value& input, const Arguments& arguments, Usage& usage);
[[nodiscard]] bool apply_test(const std::string& name, const Value& input, const Arguments& arguments);
// A method of a text, list or map.
[[nodiscard]] bool has_method(const Value& object, const std::string& name);
[[nodiscard]] Value call_method(const Value& object, const std::string& name, const Arguments& arguments, Usage& usage);

// object.key and object[key]; undefined where there is none. Throws when the object itself is undefined.
[[nodiscard]] Value member_of(const Value& object, const std::string& key, Usage& usage);
[[nodiscard]] Value item_of(const Value& object, const Value& key, Usage& usage);
[[nodiscard]] Value slice_of(const Value& object, const Value& start, const Value& stop, const Value& step);
[[nodiscard]] bool contains(const Value& container, const Value& item, Usage& usage);

// An argument by place or name; null if it is not given.
[[nodiscard]] const Value* argument(const Arguments& arguments, std::size_t place, std::string_view name);
// Refuses named arguments that are not in the list, and more than `most` positional ones.
void check_arguments(const Arguments& arguments, std::size_t most, std::initializer_list<std::string_view> names);

enum class Side { left, right, both };
// Python's str.strip: white space, or any character of `characters`.
[[nodiscard]] Text strip(const Text& text, Side side, const std::string* characters);
[[nodiscard]] Text replace(const Text& text, const Text& from, const Text& to, std::int64_t most);
[[nodiscard]] Text change_case(const Text& text, const std::string& how);  // upper, lower, title, capitalize
[[nodiscard]] std::int64_t length_of(const Value& value);
[[nodiscard]] Value join(const Value& items, const Text& between);

}  // namespace lamina::jinja
