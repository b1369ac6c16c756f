#include "json_node.hpp"

#include "utf8.hpp"

#include <algorithm>

#include <lamina/base/error.hpp>
#include <lamina/base/json.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::size_t max_depth = 64;
constexpr std::size_t max_quoted = 48;

}  // namespace

nlohmann::json parse_strict_json(std::string_view text, const std::string& file) {
  try {
    return parse_json(text, max_depth);
  } catch (const JsonFault& fault) {
    const std::string what =
        fault.byte() > 0 ? fmt::format("not valid JSON at byte {}: {}", fault.byte(), fault.what()) : fault.what();
    throw DataError(one_line(fmt::format("cannot use {}", file), what, "fetch the file again"));
  }
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
