// Values of chat templates, as Jinja sees Python's.
//
// Values are immutable but for namespaces, and cheap to copy. Texts remember where they come from: which bytes are a
// message's own (not its role, and nothing the template wrote), and which parts of the request they hold, so that
// rendering can tell what of a conversation reached the output.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lamina::jinja {

// What a template cannot do, with its line where it is known; ChatTemplate turns it into a DataError.
class TemplateError : public std::runtime_error {
 public:
  explicit TemplateError(const std::string& what, bool lacks_token = false)
      : std::runtime_error(what), lacks_token_(lacks_token) {}
  // The template writes a special token that the tokenizer does not name.
  [[nodiscard]] bool lacks_token() const { return lacks_token_; }

 private:
  bool lacks_token_;
};

using Sources = std::vector<std::uint32_t>;  // parts of the request, in ascending order

struct Text {
  std::string bytes;
  // The smallest range that holds all bytes of messages; first > last: none.
  std::size_t first = 1, last = 0;
  Sources sources;

  [[nodiscard]] bool has_own() const { return first <= last; }
};

class Value;
using List = std::vector<Value>;
struct Arguments;
using Callable = std::function<Value(const Arguments&)>;

// In the order of writing.
struct Map {
  std::vector<std::pair<std::string, Value>> entries;
  std::int64_t message = -1;     // index of the message that this is
  std::uint32_t first_part = 0;  // part of the request that a message's first entry is; the next entries follow

  [[nodiscard]] const Value* find(std::string_view key) const;
};

struct Undefined {
  std::string name;
};

class Value {
 public:
  Value() : data_(nameless()) {}
  static Value undefined(std::string name) {
    return Value(Data(std::make_shared<const Undefined>(Undefined{std::move(name)})));
  }
  static Value none() { return Value(Data(nullptr)); }
  explicit Value(bool value) : data_(value) {}
  explicit Value(std::int64_t value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(std::string text) : Value(Text{std::move(text), 1, 0, {}}) {}
  explicit Value(Text text) : data_(std::make_shared<const Text>(std::move(text))) {}
  explicit Value(List list) : data_(std::make_shared<const List>(std::move(list))) {}
  explicit Value(Map map) : data_(std::make_shared<const Map>(std::move(map))) {}
  explicit Value(Callable callable) : data_(std::make_shared<const Callable>(std::move(callable))) {}
  static Value make_namespace(Map map) { return Value(Data(std::make_shared<Map>(std::move(map)))); }

  [[nodiscard]] bool is_undefined() const { return std::holds_alternative<UndefinedPtr>(data_); }
  [[nodiscard]] bool is_none() const { return std::holds_alternative<std::nullptr_t>(data_); }
  [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&data_); }
  [[nodiscard]] const std::int64_t* integer() const { return std::get_if<std::int64_t>(&data_); }
  [[nodiscard]] const double* real() const { return std::get_if<double>(&data_); }
  [[nodiscard]] const Text* text() const { return pointee<TextPtr>(); }
  [[nodiscard]] const List* list() const { return pointee<ListPtr>(); }
  [[nodiscard]] const Map* map() const { return pointee<MapPtr>(); }
  [[nodiscard]] Map* space() const {
    const auto* held = std::get_if<SpacePtr>(&data_);
    return held == nullptr ? nullptr : held->get();
  }
  [[nodiscard]] const Callable* callable() const { return pointee<CallablePtr>(); }
  [[nodiscard]] const std::string& undefined_name() const { return std::get<UndefinedPtr>(data_)->name; }
  [[nodiscard]] bool is_number() const { return boolean() != nullptr || integer() != nullptr || real() != nullptr; }
  [[nodiscard]] double number() const;  // of a number

  [[nodiscard]] bool truth() const;
  [[nodiscard]] const char* kind() const;  // as Python calls the type

 private:
  using UndefinedPtr = std::shared_ptr<const Undefined>;
  using TextPtr = std::shared_ptr<const Text>;
  using ListPtr = std::shared_ptr<const List>;
  using MapPtr = std::shared_ptr<const Map>;
  using SpacePtr = std::shared_ptr<Map>;
  using CallablePtr = std::shared_ptr<const Callable>;
  using Data = std::variant<UndefinedPtr, std::nullptr_t, bool, std::int64_t, double, TextPtr, ListPtr, MapPtr,
                            SpacePtr, CallablePtr>;

  explicit Value(Data data) : data_(std::move(data)) {}
  static const UndefinedPtr& nameless() {
    static const UndefinedPtr shared = std::make_shared<const Undefined>();
    return shared;
  }
  template <typename Pointer>
  [[nodiscard]] auto pointee() const -> decltype(std::declval<Pointer>().get()) {
    const auto* held = std::get_if<Pointer>(&data_);
    return held == nullptr ? nullptr : held->get();
  }

  Data data_;
};

struct Arguments {
  List positional;
  std::vector<std::pair<std::string, Value>> named;
};

[[nodiscard]] bool equal(const Value& a, const Value& b);
// -1, 0 or 1; throws for values that Python does not order.
[[nodiscard]] int compare(const Value& a, const Value& b);

// str(value), and repr(value) as it stands inside lists and maps.
[[nodiscard]] Text to_text(const Value& value);
[[nodiscard]] Text to_repr(const Value& value);

// What a for loop visits: the items, a map's keys, a text's characters. Throws for what cannot be visited.
[[nodiscard]] List items_of(const Value& value);

// Texts that keep their origin.
void append(Text& out, const Text& more);
[[nodiscard]] Text part_of(const Text& text, std::size_t begin, std::size_t end);
[[nodiscard]] Text with_bytes(const Text& origin, std::string bytes);  // wholly the origin's
void add_sources(Sources& out, const Sources& more);
// All sources inside a value.
void collect_sources(const Value& value, Sources& out);

// json.dumps with ensure_ascii=False, or as the settings say; indent < 0: on one line.
struct JsonStyle {
  std::int64_t indent = -1;
  std::string item_separator, key_separator;  // empty: Python's
  bool ensure_ascii = false, sort_keys = false;
};
[[nodiscard]] Text to_json(const Value& value, const JsonStyle& style);
[[nodiscard]] std::string python_float(double value);

}  // namespace lamina::jinja
