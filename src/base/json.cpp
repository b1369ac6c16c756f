#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <lamina/base/json.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

// Escape sequences and quotes of a key or string would spoil a message in one line.
std::string shown(std::string_view text) {
  constexpr std::size_t most = 48;
  std::string out;
  for (const char c : text.substr(0, most)) out.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c);
  return text.size() > most ? out + "..." : out;
}

// The surrogate that is alone: the last escape before the fault, or the one before if the last is none (\ud83d\u0041).
std::string lone_escape(std::string_view text, std::size_t end) {
  constexpr std::size_t length = 6;
  std::size_t at = text.substr(0, end).rfind("\\u");
  if (at == std::string_view::npos) return {};
  const bool surrogate = at + 2 < text.size() && (text[at + 2] == 'd' || text[at + 2] == 'D');
  if (!surrogate && at >= length && text.substr(at - length).starts_with("\\u")) at -= length;
  return " " + std::string(text.substr(at, length));
}

struct Literal {
  std::string_view text, what, fix;
};
constexpr std::string_view python = "write the data with Python's json.dumps";
constexpr std::array literals{
    Literal{"NaN", "NaN is no JSON number", "write null in its place, or leave the key out"},
    Literal{"nan", "NaN is no JSON number", "write null in its place, or leave the key out"},
    Literal{"Infinity", "Infinity is no JSON number", "write null in its place, or leave the key out"},
    Literal{"True", "True is Python's notation, JSON's is true", python},
    Literal{"False", "False is Python's notation, JSON's is false", python},
    Literal{"None", "None is Python's notation, JSON's is null", python},
    Literal{"'", "JSON has double quotes only, this is a single one", python}};

// What the library says, without its own name and places.
std::string plain_words(std::string_view text) {
  for (const std::string_view mark : {"] ", ": ", " - "}) {
    const std::size_t at = text.find(mark);
    if (at != std::string_view::npos) text.remove_prefix(at + mark.size());
  }
  return shown(text.substr(0, text.find("; last read")));
}

JsonFault explain(std::string_view text, std::size_t byte, std::string_view library) {
  const auto says = [&](std::string_view words) { return library.find(words) != std::string_view::npos; };
  const std::size_t at = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const auto value = at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  if (says("surrogate"))
    return {fmt::format("a lone surrogate{}: half a character", lone_escape(text, byte)), byte,
            "write the whole character, or \\ufffd in its place"};
  if (says("ill-formed UTF-8") && at < text.size())
    return {fmt::format("the byte 0x{:02x} is not UTF-8", value), byte, "convert the file to UTF-8"};
  if (says("number overflow")) return {"a number is out of range", byte, ""};
  if (says("control character") && at < text.size())
    return {fmt::format("a raw control character 0x{:02x} inside a text", value), byte,
            "write it as an escape, such as \\n or \\t"};
  for (const Literal& literal : literals) {
    if (text.substr(at).starts_with(literal.text)) {
      return {std::string(literal.what), byte, std::string(literal.fix)};
    }
  }
  if (says("unexpected end of input") || at >= text.size()) return {"it ends in the middle", byte, ""};
  return {plain_words(library), byte, ""};
}

// Builds the document and remembers the first fault.
template <class Json>
class StrictBuilder final : public nlohmann::json_sax<Json> {
  using text_t = typename Json::string_t;

 public:
  StrictBuilder(std::string_view text, std::size_t max_depth) : text_(text), max_depth_(max_depth) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(typename Json::number_integer_t value) override { return put(value); }
  bool number_unsigned(typename Json::number_unsigned_t value) override { return put(value); }
  bool number_float(typename Json::number_float_t value, const text_t&) override { return put(value); }
  bool string(text_t& value) override { return put(std::move(value)); }
  bool binary(typename Json::binary_t&) override { return fail({"binary values are not JSON", 0, ""}); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(text_t& name) override {
    const auto [place, fresh] =
        open_.back()->template get_ref<typename Json::object_t&>().emplace(std::move(name), Json(nullptr));
    if (!fresh) return fail({fmt::format("key '{}' is given twice in one object", shown(place->first)), 0, ""});
    slot_ = &place->second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    return fail(explain(text_, position, error.what()));
  }

  [[nodiscard]] const std::optional<JsonFault>& fault() const { return fault_; }
  [[nodiscard]] Json take() { return std::move(root_); }

 private:
  template <typename T>
  bool put(T&& value) {
    static_cast<void>(place(Json(std::forward<T>(value))));
    return true;
  }
  Json* place(Json&& value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_object()) {
      *slot_ = std::move(value);
      return slot_;
    }
    auto& array = open_.back()->template get_ref<typename Json::array_t&>();
    array.push_back(std::move(value));
    return &array.back();
  }
  bool open(Json&& container) {
    if (open_.size() == max_depth_) return fail({fmt::format("nested deeper than {} levels", max_depth_), 0, ""});
    open_.push_back(place(std::move(container)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool fail(JsonFault fault) {
    if (!fault_) fault_ = std::move(fault);
    return false;
  }

  std::string_view text_;
  std::size_t max_depth_;
  Json root_;
  std::vector<Json*> open_;
  Json* slot_ = nullptr;
  std::optional<JsonFault> fault_;
};

template <class Json>
Json parse(std::string_view text, std::size_t max_depth) {
  StrictBuilder<Json> builder(text, max_depth);
  if (!Json::sax_parse(text, &builder)) throw *builder.fault();
  return builder.take();
}

}  // namespace

nlohmann::json parse_json(std::string_view text, std::size_t max_depth) {
  return parse<nlohmann::json>(text, max_depth);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, std::size_t max_depth) {
  return parse<nlohmann::ordered_json>(text, max_depth);
}

}  // namespace lamina
