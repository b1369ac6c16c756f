// JSON from outside, read with suspicion: every complaint names the file and the place in it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lamina {

// Parses `text`. Refuses (DataError naming `file`): malformed JSON, non-UTF-8, a key twice in one object, nesting
// deeper than 64.
[[nodiscard]] nlohmann::json parse_strict_json(std::string_view text, const std::string& file);

// Untrusted text for an error message: quoted, cut to a readable length, control characters replaced.
[[nodiscard]] std::string in_quotes(std::string_view text);

// A value with its place. A view: the document and the file name outlive it.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, const std::string& file, std::string place)
      : value_(&value), file_(&file), place_(std::move(place)) {}

  [[nodiscard]] const nlohmann::json& raw() const { return *value_; }
  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] std::string described() const { return *file_ + ": " + (place_.empty() ? "top" : place_); }
  [[nodiscard]] bool is_null() const { return value_->is_null(); }

  // Member of an object; `at` refuses when it is missing, `find` gives nothing when it is missing or null.
  [[nodiscard]] JsonNode at(const std::string& key) const;
  [[nodiscard]] std::optional<JsonNode> find(const std::string& key) const;
  // Element of an array.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] JsonNode at(std::size_t index) const;
  // Refuses members that are not named.
  void only_keys(std::initializer_list<std::string_view> keys) const;

  [[nodiscard]] const std::string& string() const;
  // The same, refused beyond `limit` bytes: text that is inserted again and again.
  [[nodiscard]] const std::string& short_string(std::size_t limit = 256) const;
  // A string of exactly one character.
  [[nodiscard]] const std::string& character() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::int64_t integer(std::int64_t low, std::int64_t high) const;
  [[nodiscard]] bool flag(const std::string& key, bool fallback) const;

  // Throws DataError "file: place: why; fix".
  [[noreturn]] void refuse(const std::string& why, const std::string& fix = {}) const;

 private:
  void require_object() const;

  const nlohmann::json* value_;
  const std::string* file_;
  std::string place_;
};

}  // namespace lamina
