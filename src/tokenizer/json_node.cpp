#include "json_node.hpp"

#include "utf8.hpp"

#include <algorithm>
#include <vector>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::size_t max_depth = 64;
constexpr std::size_t max_quoted = 48;

// Builds the document and remembers the first fault.
class StrictBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Json = nlohmann::json;

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return fail("binary values are not JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    const auto [place, fresh] = open_.back()->get_ref<Json::object_t&>().emplace(std::move(name), nullptr);
    if (!fresh) return fail(fmt::format("key {} appears twice in one object", in_quotes(place->first)));
    slot_ = &place->second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // The library's text starts with "[json.exception...] "; the reader wants the rest.
    const std::string_view text = error.what();
    const std::size_t start = text.find("] ");
    return fail(fmt::format("not valid JSON at byte {}: {}", position,
                            text.substr(start == std::string_view::npos ? 0 : start + 2)));
  }

  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] Json take() { return std::move(root_); }

 private:
  template <typename T>
  bool put(T&& value) {
    (void)place(Json(std::forward<T>(value)));
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
    auto& array = open_.back()->get_ref<Json::array_t&>();
    array.push_back(std::move(value));
    return &array.back();
  }
  bool open(Json&& container) {
    if (open_.size() == max_depth) return fail(fmt::format("nested deeper than {} levels", max_depth));
    open_.push_back(place(std::move(container)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool fail(std::string why) {
    if (fault_.empty()) fault_ = std::move(why);
    return false;
  }

  Json root_;
  std::vector<Json*> open_;
  Json* slot_ = nullptr;
  std::string fault_;
};

}  // namespace

nlohmann::json parse_strict_json(std::string_view text, const std::string& file) {
  StrictBuilder builder;
  if (!nlohmann::json::sax_parse(text, &builder)) {
    throw DataError(one_line(fmt::format("cannot use {}", file), builder.fault(), "fetch the file again"));
  }
  return builder.take();
}

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  const std::string clean = utf8::replace_invalid(text.substr(0, max_quoted));
  for (const char c : clean) out.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c);
  return out + (text.size() > max_quoted ? "...'" : "'");
}

void JsonNode::refuse(const std::string& why, const std::string& fix) const {
  throw DataError(
      one_line(fmt::format("cannot use {}", *file_), fmt::format("{}: {}", place_.empty() ? "top" : place_, why), fix));
}

void JsonNode::require_object() const {
  if (!value_->is_object()) refuse(fmt::format("expected an object, found {}", value_->type_name()));
}

JsonNode JsonNode::at(const std::string& key) const {
  require_object();
  const auto found = value_->find(key);
  if (found == value_->end()) refuse(fmt::format("key '{}' is missing", key));
  return {*found, *file_, place_.empty() ? key : place_ + "." + key};
}

std::optional<JsonNode> JsonNode::find(const std::string& key) const {
  require_object();
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonNode(*found, *file_, place_.empty() ? key : place_ + "." + key);
}

std::size_t JsonNode::size() const {
  if (!value_->is_array()) refuse(fmt::format("expected an array, found {}", value_->type_name()));
  return value_->size();
}

JsonNode JsonNode::at(std::size_t index) const {
  return {(*value_)[index], *file_, fmt::format("{}[{}]", place_, index)};
}

void JsonNode::only_keys(std::initializer_list<std::string_view> keys) const {
  require_object();
  for (const auto& [key, value] : value_->items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      refuse(fmt::format("key {} is not known", in_quotes(key)), "Lamina does not guess what it would change");
    }
  }
}

const std::string& JsonNode::string() const {
  if (!value_->is_string()) refuse(fmt::format("expected a string, found {}", value_->type_name()));
  return value_->get_ref<const std::string&>();
}

const std::string& JsonNode::short_string(std::size_t limit) const {
  const std::string& text = string();
  if (text.size() > limit) refuse(fmt::format("text of {} bytes, expected at most {}", text.size(), limit));
  return text;
}

const std::string& JsonNode::character() const {
  const std::string& text = string();
  if (text.empty() || utf8::decode_first(text).size != text.size()) refuse("expected one character");
  return text;
}

bool JsonNode::boolean() const {
  if (!value_->is_boolean()) refuse(fmt::format("expected true or false, found {}", value_->type_name()));
  return value_->get<bool>();
}

std::int64_t JsonNode::integer(std::int64_t low, std::int64_t high) const {
  if (!value_->is_number_integer()) refuse(fmt::format("expected an integer, found {}", value_->type_name()));
  const bool too_large = value_->is_number_unsigned() &&
                         value_->get<std::uint64_t>() > static_cast<std::uint64_t>(std::max<std::int64_t>(high, 0));
  const std::int64_t value = too_large ? high : value_->get<std::int64_t>();
  if (too_large || value < low || value > high)
    refuse(fmt::format("{} is outside {} to {}", value_->dump(), low, high));
  return value;
}

bool JsonNode::flag(const std::string& key, bool fallback) const {
  const auto node = find(key);
  return node ? node->boolean() : fallback;
}

}  // namespace lamina
