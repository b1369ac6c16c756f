// Methods of texts, lists and maps.
#include "jinja_builtins.hpp"
#include "utf8.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace lamina::jinja {

namespace {

const std::set<std::string, std::less<>> text_methods = {
    "strip",    "lstrip",  "rstrip", "split",   "rsplit", "splitlines",   "startswith",
    "endswith", "replace", "upper",  "lower",   "title",  "capitalize",   "find",
    "rfind",    "count",   "join",   "isdigit", "index",  "removeprefix", "removesuffix"};
const std::set<std::string, std::less<>> map_methods = {"get", "items", "keys", "values"};
const std::set<std::string, std::less<>> list_methods = {"index", "count"};

const Text& text_argument(const Arguments& arguments, std::size_t place, std::string_view name) {
  const Value* value = argument(arguments, place, name);
  if (value == nullptr || value->text() == nullptr) {
    throw TemplateError(fmt::format("a text is expected as argument {}{}", place + 1,
                                    value == nullptr ? std::string() : fmt::format(", not {}", value->kind())));
  }
  return *value->text();
}

const std::string* optional_characters(const Arguments& arguments) {
  check_arguments(arguments, 1, {});
  const Value* value = argument(arguments, 0, "");
  if (value == nullptr || value->is_none()) return nullptr;
  return &text_argument(arguments, 0, "").bytes;
}

std::int64_t count_argument(const Arguments& arguments, std::size_t place, std::string_view name) {
  const Value* value = argument(arguments, place, name);
  if (value == nullptr) return -1;
  if (value->integer() == nullptr) throw TemplateError(fmt::format("a count is expected, not {}", value->kind()));
  return *value->integer();
}

// Words between white space; `most` < 0: no limit.
List split_words(const Text& text, std::int64_t most) {
  List out;
  Text rest = strip(text, Side::left, nullptr);
  while (!rest.bytes.empty()) {
    std::size_t end = 0;
    if (most >= 0 && static_cast<std::int64_t>(out.size()) == most) {
      out.emplace_back(strip(rest, Side::right, nullptr));
      break;
    }
    for (; end < rest.bytes.size(); end += utf8::next_sequence(std::string_view(rest.bytes).substr(end)).size) {
      const std::string_view tail = std::string_view(rest.bytes).substr(end);
      if (strip(part_of(rest, end, end + utf8::next_sequence(tail).size), Side::left, nullptr).bytes.empty()) break;
    }
    out.emplace_back(part_of(rest, 0, end));
    rest = strip(part_of(rest, end, rest.bytes.size()), Side::left, nullptr);
  }
  return out;
}

List split(const Text& text, const std::string& name, const Arguments& arguments) {
  check_arguments(arguments, 2, {"sep", "maxsplit"});
  const Value* separator = argument(arguments, 0, "sep");
  const std::int64_t most = count_argument(arguments, 1, "maxsplit");
  if (separator == nullptr || separator->is_none()) {
    if (name == "rsplit" && most >= 0) throw TemplateError("rsplit at white space with a limit is not supported");
    return split_words(text, most);
  }
  const std::string& mark = text_argument(arguments, 0, "sep").bytes;
  if (mark.empty()) throw TemplateError("an empty separator");
  std::vector<std::size_t> cuts;
  if (name == "split") {
    for (std::size_t at = text.bytes.find(mark); at != std::string::npos;
         at = text.bytes.find(mark, at + mark.size())) {
      if (most >= 0 && static_cast<std::int64_t>(cuts.size()) == most) break;
      cuts.push_back(at);
    }
  } else {
    for (std::size_t end = text.bytes.size(); end >= mark.size();) {
      const std::size_t at = text.bytes.rfind(mark, end - mark.size());
      if (at == std::string::npos || (most >= 0 && static_cast<std::int64_t>(cuts.size()) == most)) break;
      cuts.insert(cuts.begin(), at);
      end = at;
    }
  }
  List out;
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    out.emplace_back(part_of(text, begin, cut));
    begin = cut + mark.size();
  }
  out.emplace_back(part_of(text, begin, text.bytes.size()));
  return out;
}

List split_lines(const Text& text, bool keep_ends) {
  List out;
  for (std::size_t begin = 0; begin < text.bytes.size();) {
    const std::size_t end = std::min(text.bytes.find_first_of("\n\r", begin), text.bytes.size());
    std::size_t next = std::min(end + 1, text.bytes.size());
    if (next < text.bytes.size() && text.bytes[end] == '\r' && text.bytes[next] == '\n') ++next;
    out.emplace_back(part_of(text, begin, keep_ends ? next : end));
    begin = next;
  }
  return out;
}

bool has_edge(const std::string& text, const Arguments& arguments, bool start) {
  check_arguments(arguments, 1, {});
  const auto fits = [&](const Value& edge) {
    if (edge.text() == nullptr) throw TemplateError(fmt::format("a text is expected, not {}", edge.kind()));
    return start ? text.starts_with(edge.text()->bytes) : text.ends_with(edge.text()->bytes);
  };
  const Value* edge = argument(arguments, 0, "");
  if (edge == nullptr) throw TemplateError("an argument is missing");
  return edge->list() != nullptr ? std::ranges::any_of(*edge->list(), fits) : fits(*edge);
}

std::int64_t characters_before(const std::string& text, std::size_t at) {
  return at == std::string::npos ? -1 : length_of(Value(text.substr(0, at)));
}

Value search(const Text& text, const std::string& name, const Arguments& arguments) {
  check_arguments(arguments, 1, {});
  const std::string& part = text_argument(arguments, 0, "").bytes;
  if (name == "count") {
    if (part.empty()) throw TemplateError("count of the empty text");
    std::int64_t count = 0;
    for (std::size_t at = text.bytes.find(part); at != std::string::npos; at = text.bytes.find(part, at + part.size()))
      ++count;
    return Value(count);
  }
  const std::size_t at = name == "rfind" ? text.bytes.rfind(part) : text.bytes.find(part);
  if (name == "index" && at == std::string::npos) throw TemplateError("the text that is looked for is not there");
  return Value(characters_before(text.bytes, at));
}

Value text_method(const Text& text, const std::string& name, const Arguments& arguments) {
  if (name == "strip") return Value(strip(text, Side::both, optional_characters(arguments)));
  if (name == "lstrip") return Value(strip(text, Side::left, optional_characters(arguments)));
  if (name == "rstrip") return Value(strip(text, Side::right, optional_characters(arguments)));
  if (name == "split" || name == "rsplit") return Value(split(text, name, arguments));
  if (name == "startswith" || name == "endswith") return Value(has_edge(text.bytes, arguments, name == "startswith"));
  if (name == "replace") {
    check_arguments(arguments, 3, {"count"});
    return Value(replace(text, text_argument(arguments, 0, ""), text_argument(arguments, 1, ""),
                         count_argument(arguments, 2, "count")));
  }
  if (name == "find" || name == "rfind" || name == "count" || name == "index") return search(text, name, arguments);
  if (name == "join") {
    check_arguments(arguments, 1, {});
    if (arguments.positional.empty()) throw TemplateError("an argument is missing");
    for (const Value& item : items_of(arguments.positional[0])) {
      if (item.text() == nullptr) throw TemplateError(fmt::format("join of a {}", item.kind()));
    }
    return join(arguments.positional[0], text);
  }
  if (name == "removeprefix" || name == "removesuffix") {
    check_arguments(arguments, 1, {});
    const std::size_t size = text_argument(arguments, 0, "").bytes.size();
    if (!has_edge(text.bytes, arguments, name == "removeprefix")) return Value(text);
    return Value(name == "removeprefix" ? part_of(text, size, text.bytes.size())
                                        : part_of(text, 0, text.bytes.size() - size));
  }
  if (name == "splitlines") {
    check_arguments(arguments, 1, {"keepends"});
    const Value* keep = argument(arguments, 0, "keepends");
    return Value(split_lines(text, keep != nullptr && keep->truth()));
  }
  check_arguments(arguments, 0, {});
  if (name == "isdigit") {
    const bool digits = std::ranges::all_of(text.bytes, [](char c) { return c >= '0' && c <= '9'; });
    return Value(!text.bytes.empty() && digits);
  }
  return Value(change_case(text, name));
}

Value map_method(const Map& map, const std::string& name, const Arguments& arguments) {
  if (name == "get") {
    check_arguments(arguments, 2, {});
    if (arguments.positional.empty()) throw TemplateError("an argument is missing");
    const Text* key = arguments.positional[0].text();
    const Value* found = key == nullptr ? nullptr : map.find(key->bytes);
    if (found != nullptr) return *found;
    return arguments.positional.size() > 1 ? arguments.positional[1] : Value::none();
  }
  check_arguments(arguments, 0, {});
  List out;
  for (const auto& [key, value] : map.entries) {
    if (name == "keys") out.emplace_back(key);
    if (name == "values") out.push_back(value);
    if (name == "items") out.emplace_back(List{Value(key), value});
  }
  return Value(std::move(out));
}

}  // namespace

bool has_method(const Value& object, const std::string& name) {
  if (object.text() != nullptr) return text_methods.contains(name);
  if (object.map() != nullptr) return map_methods.contains(name);
  return object.list() != nullptr && list_methods.contains(name);
}

Value call_method(const Value& object, const std::string& name, const Arguments& arguments, Usage& usage) {
  if (!has_method(object, name)) throw TemplateError(fmt::format("{} has no method '{}'", object.kind(), name));
  if (const Text* text = object.text()) return text_method(*text, name, arguments);
  if (const Map* map = object.map()) {
    if (name != "get") {
      usage.mark_all_read(object);
    } else if (const Value* key = argument(arguments, 0, ""); key != nullptr && key->text() != nullptr) {
      usage.mark_read(*map, key->text()->bytes);
    }
    return map_method(*map, name, arguments);
  }
  check_arguments(arguments, 1, {});
  if (arguments.positional.empty()) throw TemplateError("an argument is missing");
  std::int64_t first = -1, count = 0;
  for (std::size_t i = 0; i < object.list()->size(); ++i) {
    if (!equal((*object.list())[i], arguments.positional[0])) continue;
    if (first < 0) first = static_cast<std::int64_t>(i);
    ++count;
  }
  if (name == "count") return Value(count);
  if (first < 0) throw TemplateError("the item that is looked for is not there");
  return Value(first);
}

}  // namespace lamina::jinja
