// Jinja's filters and tests.
#include "jinja_builtins.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace lamina::jinja {

namespace {

Arguments rest_of(const Arguments& arguments, std::size_t first) {
  Arguments rest{{}, arguments.named};
  for (std::size_t i = first; i < arguments.positional.size(); ++i) rest.positional.push_back(arguments.positional[i]);
  return rest;
}

std::string name_argument(const Arguments& arguments, std::size_t place) {
  const Value* value = argument(arguments, place, "");
  if (value == nullptr || value->text() == nullptr) throw TemplateError("a name is expected as argument");
  return value->text()->bytes;
}

// "function.name" as two members.
Value member_by_path(Value object, std::string_view path, Usage& usage) {
  while (true) {
    const std::size_t dot = path.find('.');
    object = item_of(object, Value(std::string(path.substr(0, dot))), usage);
    if (dot == std::string_view::npos) return object;
    path.remove_prefix(dot + 1);
  }
}

Value map_filter(const Value& input, const Arguments& arguments, Usage& usage) {
  List out;
  const Value* attribute = arguments.positional.empty() ? argument(arguments, 0, "attribute") : nullptr;
  if (attribute != nullptr) check_arguments(arguments, 0, {"attribute", "default"});
  for (const Value& item : items_of(input)) {
    if (attribute == nullptr) {
      out.push_back(apply_filter(name_argument(arguments, 0), item, rest_of(arguments, 1), usage));
      continue;
    }
    Value member = member_by_path(item, to_text(*attribute).bytes, usage);
    const Value* otherwise = argument(arguments, 1, "default");
    out.push_back(member.is_undefined() && otherwise != nullptr ? *otherwise : std::move(member));
  }
  return Value(std::move(out));
}

// select, reject, selectattr, rejectattr.
Value selection(const std::string& name, const Value& input, const Arguments& arguments, Usage& usage) {
  const bool by_attribute = name.ends_with("attr"), wanted = name.starts_with("select");
  const std::size_t test_place = by_attribute ? 1 : 0;
  List out;
  for (const Value& item : items_of(input)) {
    const Value subject = by_attribute ? member_by_path(item, name_argument(arguments, 0), usage) : item;
    const bool passes =
        arguments.positional.size() > test_place
            ? apply_test(name_argument(arguments, test_place), subject, rest_of(arguments, test_place + 1))
            : subject.truth();
    if (passes == wanted) out.push_back(item);
  }
  return Value(std::move(out));
}

Value json_filter(const Value& input, const Arguments& arguments, Usage& usage) {
  check_arguments(arguments, 1, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  // transformers' tojson takes ensure_ascii first; templates give the others by name.
  if (const Value* ascii = argument(arguments, 0, "ensure_ascii")) style.ensure_ascii = ascii->truth();
  if (const Value* indent = argument(arguments, 9, "indent"); indent != nullptr && !indent->is_none()) {
    if (indent->integer() == nullptr || *indent->integer() < 0) throw TemplateError("tojson's indent is not a number");
    style.indent = *indent->integer();
  }
  if (const Value* both = argument(arguments, 9, "separators"); both != nullptr && !both->is_none()) {
    if (both->list() == nullptr || both->list()->size() != 2)
      throw TemplateError("tojson's separators are not two texts");
    style.item_separator = to_text((*both->list())[0]).bytes;
    style.key_separator = to_text((*both->list())[1]).bytes;
  }
  if (const Value* sort = argument(arguments, 9, "sort_keys")) style.sort_keys = sort->truth();
  usage.mark_all_read(input);
  return Value(to_json(input, style));
}

Value sorted(const Value& input, const Arguments& arguments, Usage& usage) {
  check_arguments(arguments, 0, {"attribute", "reverse"});
  const Value* attribute = argument(arguments, 9, "attribute");
  const Value* reverse = argument(arguments, 9, "reverse");
  List items = items_of(input);
  // Without regard to case, as Jinja does.
  const auto key = [&](const Value& item) {
    const Value value = attribute == nullptr ? item : member_by_path(item, to_text(*attribute).bytes, usage);
    return value.text() == nullptr ? value : Value(change_case(*value.text(), "lower"));
  };
  const bool backwards = reverse != nullptr && reverse->truth();
  std::ranges::stable_sort(items, [&](const Value& a, const Value& b) {
    return backwards ? compare(key(b), key(a)) < 0 : compare(key(a), key(b)) < 0;
  });
  return Value(std::move(items));
}

Value number_filter(const std::string& name, const Value& input, const Arguments& arguments) {
  check_arguments(arguments, 1, {"default"});
  const Value* otherwise = argument(arguments, 0, "default");
  const bool whole = name == "int";
  if (input.is_number()) {
    return whole ? Value(static_cast<std::int64_t>(input.number())) : Value(input.number());
  }
  if (const Text* text = input.text()) {
    const std::string bytes = strip(*text, Side::both, nullptr).bytes;
    char* end = nullptr;
    const double number = std::strtod(bytes.c_str(), &end);
    if (!bytes.empty() && *end == '\0' && std::fabs(number) < 9e15) {
      return whole ? Value(static_cast<std::int64_t>(number)) : Value(number);
    }
  }
  if (otherwise != nullptr) return *otherwise;
  return whole ? Value(std::int64_t{0}) : Value(0.0);
}

Value indented(const Text& text, const Arguments& arguments) {
  check_arguments(arguments, 3, {"width", "first", "blank"});
  const Value* width = argument(arguments, 0, "width");
  const Value* first = argument(arguments, 1, "first");
  const Value* blank = argument(arguments, 2, "blank");
  std::string by = "    ";
  if (width != nullptr)
    by = width->text() != nullptr
             ? width->text()->bytes
             : std::string(static_cast<std::size_t>(std::clamp(width->number(), 0.0, 1000.0)), ' ');
  Text out;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = std::min(text.bytes.find('\n', begin), text.bytes.size());
    const bool wanted =
        begin == 0 ? first != nullptr && first->truth() : end > begin || (blank != nullptr && blank->truth());
    if (wanted) append(out, {by, 1, 0, {}});
    append(out, part_of(text, begin, std::min(end + 1, text.bytes.size())));
    if (end == text.bytes.size()) return Value(std::move(out));
    begin = end + 1;
  }
}

Value unique(const Value& input) {
  List out;
  for (const Value& item : items_of(input)) {
    if (std::ranges::none_of(out, [&](const Value& other) { return equal(item, other); })) out.push_back(item);
  }
  return Value(std::move(out));
}

Value edge_item(const Value& input, bool first) {
  const List items = items_of(input);
  if (items.empty()) return Value::undefined(first ? "the first item of nothing" : "the last item of nothing");
  return first ? items.front() : items.back();
}

Value pairs(const Value& input, bool sort, Usage& usage) {
  if (input.is_undefined() && !sort) return Value(List());
  if (input.map() == nullptr) throw TemplateError(fmt::format("a {} has no items", input.kind()));
  usage.mark_all_read(input);
  const Value items = call_method(input, "items", {}, usage);
  if (!sort) return items;
  List out = *items.list();
  const auto key = [](const Value& item) { return change_case(to_text((*item.list())[0]), "lower").bytes; };
  std::ranges::stable_sort(out, {}, key);
  return Value(std::move(out));
}

Value reversed(const Value& input) {
  if (input.text() != nullptr) return slice_of(input, Value::none(), Value::none(), Value(std::int64_t{-1}));
  List items = items_of(input);
  std::ranges::reverse(items);
  return Value(std::move(items));
}

Value smallest(const Value& input, bool largest) {
  const List items = items_of(input);
  if (items.empty()) return Value::undefined("the least of nothing");
  const auto less = [](const Value& a, const Value& b) { return compare(a, b) < 0; };
  return largest ? *std::ranges::max_element(items, less) : *std::ranges::min_element(items, less);
}

Value text_filter(const std::string& name, const Value& input, const Arguments& arguments) {
  const Text text = to_text(input);
  if (name == "trim") {
    check_arguments(arguments, 1, {"chars"});
    const Value* characters = argument(arguments, 0, "chars");
    const bool given = characters != nullptr && !characters->is_none();
    const std::string set = given ? to_text(*characters).bytes : std::string();
    return Value(strip(text, Side::both, given ? &set : nullptr));
  }
  if (name == "replace") {
    check_arguments(arguments, 3, {"count"});
    if (arguments.positional.size() < 2) throw TemplateError("replace takes two texts");
    const Value* most = argument(arguments, 2, "count");
    const bool limited = most != nullptr && most->integer() != nullptr;
    return Value(replace(text, to_text(arguments.positional[0]), to_text(arguments.positional[1]),
                         limited ? *most->integer() : -1));
  }
  if (name == "indent") return indented(text, arguments);
  check_arguments(arguments, 0, {});
  if (name == "string" || name == "safe") return Value(text);
  return Value(change_case(text, name));
}

}  // namespace

Value apply_filter(const std::string& name, const Value& input, const Arguments& arguments, Usage& usage) {
  for (const char* known : {"trim", "replace", "indent", "string", "safe", "upper", "lower", "title", "capitalize"}) {
    if (name == known) return text_filter(name, input, arguments);
  }
  for (const char* known : {"select", "reject", "selectattr", "rejectattr"}) {
    if (name == known) return selection(name, input, arguments, usage);
  }
  if (name == "tojson") return json_filter(input, arguments, usage);
  if (name == "map") return map_filter(input, arguments, usage);
  if (name == "sort") return sorted(input, arguments, usage);
  if (name == "int" || name == "float") return number_filter(name, input, arguments);
  if (name == "default" || name == "d") {
    check_arguments(arguments, 2, {"default_value", "boolean"});
    const Value* otherwise = argument(arguments, 0, "default_value");
    const Value* boolean = argument(arguments, 1, "boolean");
    const bool missing = input.is_undefined() || (boolean != nullptr && boolean->truth() && !input.truth());
    return !missing ? input : otherwise != nullptr ? *otherwise : Value(std::string());
  }
  if (name == "join") {
    check_arguments(arguments, 2, {"d", "attribute"});
    const Value* between = argument(arguments, 0, "d");
    const Value* attribute = argument(arguments, 1, "attribute");
    const Value items = attribute == nullptr ? input : map_filter(input, {{}, {{"attribute", *attribute}}}, usage);
    return join(items, between == nullptr ? Text{} : to_text(*between));
  }
  check_arguments(arguments, 0, {});
  if (name == "length" || name == "count") return Value(length_of(input));
  if (name == "first" || name == "last") return edge_item(input, name == "first");
  if (name == "list") return Value(items_of(input));
  if (name == "items" || name == "dictsort") return pairs(input, name == "dictsort", usage);
  if (name == "reverse") return reversed(input);
  if (name == "unique") return unique(input);
  if (name == "min" || name == "max") return smallest(input, name == "max");
  if (name == "abs" && input.integer() != nullptr) return Value(std::abs(*input.integer()));
  throw TemplateError(fmt::format("the filter '{}' is not supported", name));
}

namespace {

bool is_case(const Value& input, bool upper) {
  const Text text = to_text(input);
  const std::string same = change_case(text, upper ? "upper" : "lower").bytes;
  return same == text.bytes && change_case(text, upper ? "lower" : "upper").bytes != text.bytes;
}

// Tests of one value, or nothing if the name is none.
const bool* kind_test(const std::string& name, const Value& input, bool& result) {
  const bool number = input.integer() != nullptr || input.real() != nullptr;
  const bool sequence = input.text() != nullptr || input.list() != nullptr || input.map() != nullptr;
  if (name == "defined") return result = !input.is_undefined(), &result;
  if (name == "undefined") return result = input.is_undefined(), &result;
  if (name == "none") return result = input.is_none(), &result;
  if (name == "string") return result = input.text() != nullptr, &result;
  if (name == "mapping") return result = input.map() != nullptr, &result;
  if (name == "sequence") return result = sequence || input.is_undefined(), &result;
  if (name == "iterable") return result = sequence || input.is_undefined(), &result;
  if (name == "boolean") return result = input.boolean() != nullptr, &result;
  if (name == "true" || name == "false") {
    return result = input.boolean() != nullptr && *input.boolean() == (name == "true"), &result;
  }
  if (name == "number") return result = number || input.boolean() != nullptr, &result;
  if (name == "integer") return result = input.integer() != nullptr, &result;
  if (name == "float") return result = input.real() != nullptr, &result;
  if (name == "callable") return result = input.callable() != nullptr, &result;
  if (name == "lower" || name == "upper") return result = is_case(input, name == "upper"), &result;
  if (name == "even" || name == "odd") {
    if (input.integer() == nullptr) throw TemplateError(fmt::format("a {} is neither even nor odd", input.kind()));
    return result = (*input.integer() % 2 == 0) == (name == "even"), &result;
  }
  return nullptr;
}

}  // namespace

bool apply_test(const std::string& name, const Value& input, const Arguments& arguments) {
  bool result = false;
  if (kind_test(name, input, result) != nullptr) {
    check_arguments(arguments, 0, {});
    return result;
  }
  check_arguments(arguments, 1, {});
  const auto other = [&]() -> const Value& {
    if (arguments.positional.empty()) throw TemplateError(fmt::format("the test '{}' takes an argument", name));
    return arguments.positional[0];
  };
  if (name == "equalto" || name == "eq" || name == "==") return equal(input, other());
  if (name == "ne" || name == "!=") return !equal(input, other());
  if (name == "gt" || name == "greaterthan" || name == ">") return compare(input, other()) > 0;
  if (name == "ge" || name == ">=") return compare(input, other()) >= 0;
  if (name == "lt" || name == "lessthan" || name == "<") return compare(input, other()) < 0;
  if (name == "le" || name == "<=") return compare(input, other()) <= 0;
  if (name == "sameas") return std::string_view(input.kind()) == other().kind() && equal(input, other());
  if (name == "in") {
    Usage nobody;
    return other().map() != nullptr ? other().map()->find(to_text(input).bytes) != nullptr
                                    : contains(other(), input, nobody);
  }
  if (name == "divisibleby") {
    if (input.integer() == nullptr || other().integer() == nullptr || *other().integer() == 0) {
      throw TemplateError("divisibleby takes whole numbers");
    }
    return *input.integer() % *other().integer() == 0;
  }
  throw TemplateError(fmt::format("the test '{}' is not supported", name));
}

}  // namespace lamina::jinja
