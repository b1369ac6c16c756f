// Members, items, slices and membership of values.
#include "jinja_builtins.hpp"
#include "utf8.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace lamina::jinja {

void Usage::mark_read(const Map& map, std::string_view key) {
  if (map.message < 0) return;
  for (std::size_t i = 0; i < map.entries.size(); ++i) {
    if (map.entries[i].first == key) read.at(map.first_part + i) = 1;
  }
}

void Usage::mark_all_read(const Value& value) {
  if (const Map* map = value.map(); map != nullptr && map->message >= 0) {
    for (std::size_t i = 0; i < map->entries.size(); ++i) read.at(map->first_part + i) = 1;
  }
  if (const List* list = value.list()) {
    for (const Value& item : *list) mark_all_read(item);
  }
}

void Usage::mark_printed(const Sources& sources) {
  for (const std::uint32_t part : sources) printed.at(part) = 1;
}

const Value* argument(const Arguments& arguments, std::size_t place, std::string_view name) {
  if (place < arguments.positional.size()) return &arguments.positional[place];
  for (const auto& [key, value] : arguments.named) {
    if (key == name) return &value;
  }
  return nullptr;
}

void check_arguments(const Arguments& arguments, std::size_t most, std::initializer_list<std::string_view> names) {
  if (arguments.positional.size() > most) {
    throw TemplateError(fmt::format("{} arguments are given, {} taken", arguments.positional.size(), most));
  }
  for (const auto& [name, value] : arguments.named) {
    if (std::ranges::find(names, name) == names.end())
      throw TemplateError(fmt::format("the argument '{}' is not known", name));
  }
}

namespace {

[[noreturn]] void fail_undefined(const Value& value) {
  const std::string& name = value.undefined_name();
  throw TemplateError(name.empty() ? std::string("a value that is used is not defined")
                                   : fmt::format("'{}' is not defined", name));
}

// Where each character begins, and the end.
std::vector<std::size_t> character_starts(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text.size(); at += utf8::next_sequence(text.substr(at)).size) starts.push_back(at);
  starts.push_back(text.size());
  return starts;
}

}  // namespace

Value member_of(const Value& object, const std::string& key, Usage& usage) {
  if (object.is_undefined()) fail_undefined(object);
  const Map* map = object.space() != nullptr ? object.space() : object.map();
  if (has_method(object, key)) {
    return Value(Callable(
        [object, key, &usage](const Arguments& arguments) { return call_method(object, key, arguments, usage); }));
  }
  if (map == nullptr) return Value::undefined(key);
  usage.mark_read(*map, key);
  const Value* found = map->find(key);
  return found == nullptr ? Value::undefined(key) : *found;
}

Value item_of(const Value& object, const Value& key, Usage& usage) {
  if (object.is_undefined()) fail_undefined(object);
  if (const Text* text = key.text()) {
    const Map* map = object.space() != nullptr ? object.space() : object.map();
    if (map == nullptr) return member_of(object, text->bytes, usage);
    usage.mark_read(*map, text->bytes);
    if (const Value* found = map->find(text->bytes)) return *found;
    return has_method(object, text->bytes) ? member_of(object, text->bytes, usage) : Value::undefined(text->bytes);
  }
  if (key.integer() == nullptr) return Value::undefined(to_text(key).bytes);
  const std::int64_t index = *key.integer();
  if (const List* list = object.list()) {
    const auto size = static_cast<std::int64_t>(list->size());
    const std::int64_t at = index < 0 ? index + size : index;
    return at < 0 || at >= size ? Value::undefined(fmt::format("[{}]", index)) : (*list)[static_cast<std::size_t>(at)];
  }
  if (const Text* text = object.text()) {
    const auto starts = character_starts(text->bytes);
    const auto size = static_cast<std::int64_t>(starts.size()) - 1;
    const std::int64_t at = index < 0 ? index + size : index;
    if (at < 0 || at >= size) return Value::undefined(fmt::format("[{}]", index));
    return Value(part_of(*text, starts[static_cast<std::size_t>(at)], starts[static_cast<std::size_t>(at) + 1]));
  }
  return Value::undefined(fmt::format("[{}]", index));
}

Value slice_of(const Value& object, const Value& start, const Value& stop, const Value& step) {
  const auto number = [](const Value& value) -> std::int64_t {
    if (value.integer() == nullptr) throw TemplateError(fmt::format("a slice by {}", value.kind()));
    return *value.integer();
  };
  if (object.is_undefined()) fail_undefined(object);
  const Text* text = object.text();
  if (text == nullptr && object.list() == nullptr) throw TemplateError(fmt::format("a slice of {}", object.kind()));
  const auto starts = text != nullptr ? character_starts(text->bytes) : std::vector<std::size_t>();
  const auto size = static_cast<std::int64_t>(text != nullptr ? starts.size() - 1 : object.list()->size());
  const std::int64_t by = step.is_none() ? 1 : number(step);
  if (by == 0) throw TemplateError("a slice with step 0");
  const auto clamp = [&](const Value& bound, std::int64_t otherwise) {
    if (bound.is_none()) return otherwise;
    const std::int64_t at = number(bound) < 0 ? std::max<std::int64_t>(number(bound), -size - 1) + size : number(bound);
    return by > 0 ? std::clamp<std::int64_t>(at, 0, size) : std::clamp<std::int64_t>(at, -1, size - 1);
  };
  const std::int64_t from = clamp(start, by > 0 ? 0 : size - 1), to = clamp(stop, by > 0 ? size : -1);
  if (text != nullptr && by == 1) {
    const auto first = static_cast<std::size_t>(from), last = static_cast<std::size_t>(std::max(from, to));
    return Value(part_of(*text, starts[first], starts[last]));
  }
  List items;
  Text joined;
  for (std::int64_t at = from; by > 0 ? at < to : at > to;) {
    const auto i = static_cast<std::size_t>(at);
    if (text != nullptr) {
      append(joined, part_of(*text, starts[i], starts[i + 1]));
    } else {
      items.push_back((*object.list())[i]);
    }
    if (by > size || by < -size) break;
    at += by;
  }
  return text != nullptr ? Value(std::move(joined)) : Value(std::move(items));
}

bool contains(const Value& container, const Value& item, Usage& usage) {
  if (container.is_undefined()) return false;
  if (const List* list = container.list()) {
    return std::ranges::any_of(*list, [&](const Value& other) { return equal(other, item); });
  }
  if (const Text* text = container.text()) {
    if (item.text() == nullptr) throw TemplateError(fmt::format("a {} cannot be in a text", item.kind()));
    return text->bytes.find(item.text()->bytes) != std::string::npos;
  }
  if (const Map* map = container.map()) {
    if (item.text() == nullptr) return false;
    usage.mark_read(*map, item.text()->bytes);
    return map->find(item.text()->bytes) != nullptr;
  }
  throw TemplateError(fmt::format("nothing can be in a {}", container.kind()));
}

}  // namespace lamina::jinja
