// Reads the keys of a config.json strictly: each accessor checks type and range and throws DataError naming file and
// key.
//
// A key whose value is null counts as absent, as it does for transformers.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace lamina {

class ConfigReader {
 public:
  // `object` must be a JSON object and outlive the reader; `where` names it in messages.
  ConfigReader(const nlohmann::json& object, std::string where);

  // Parses text and refuses what is no JSON object, is not UTF-8, or names a key twice in one object.
  [[nodiscard]] static nlohmann::json parse(const std::string& text, const std::string& where);

  [[nodiscard]] bool has(std::string_view key) const;
  // As `has`, but also true for null.
  [[nodiscard]] bool names(std::string_view key) const {
    asked_.emplace(key);
    return object_->contains(key);
  }
  [[nodiscard]] const std::string& where() const { return where_; }

  // Whole numbers in [1, largest].
  [[nodiscard]] std::int64_t size(std::string_view key, std::int64_t largest) const;
  [[nodiscard]] std::int64_t size_or(std::string_view key, std::int64_t largest, std::int64_t fallback) const;
  // Any whole number.
  [[nodiscard]] std::int64_t whole(std::string_view key) const;
  // Finite numbers > 0.
  [[nodiscard]] double positive(std::string_view key) const;
  [[nodiscard]] double positive_or(std::string_view key, double fallback) const;
  // Finite numbers >= 0.
  [[nodiscard]] double non_negative_or(std::string_view key, double fallback) const;
  [[nodiscard]] bool flag_or(std::string_view key, bool fallback) const;
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] std::string text_or(std::string_view key, std::string_view fallback) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;
  // A token id, or a list of them; empty when absent.
  [[nodiscard]] std::vector<std::int64_t> token_ids(std::string_view key) const;
  // The object under `key`, whose keys are then named "key.inner" in messages.
  [[nodiscard]] ConfigReader object(std::string_view key) const;

  // Refuses, naming all of them at once, when keys that have no safe default are missing.
  void require(std::initializer_list<std::string_view> keys) const;
  // One line for each key that nobody has asked for and that is one slip away from one that was: likely misspelt.
  [[nodiscard]] std::vector<std::string> slips() const;
  // Refuses every key outside `known`.
  void only(std::initializer_list<std::string_view> known) const;
  // Refuses `key` when it is present with any value.
  void must_be_absent(std::string_view key, std::string_view why) const;
  // Refuses `key` when it is present and not `expected`.
  void must_be_flag(std::string_view key, bool expected, std::string_view why) const;

  [[noreturn]] void refuse(std::string_view key, std::string_view why, std::string_view fix = {}) const;

 private:
  ConfigReader(const nlohmann::json& object, std::string where, std::string prefix);
  [[nodiscard]] const nlohmann::json& at(std::string_view key) const;
  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] std::int64_t token_id(std::string_view key, const nlohmann::json& value) const;

  const nlohmann::json* object_;
  std::string where_;
  std::string prefix_;
  mutable std::set<std::string, std::less<>> asked_;  // keys that were looked for
};

}  // namespace lamina
