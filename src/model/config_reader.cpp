#include "config_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <lamina/base/error.hpp>
#include <lamina/base/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lamina {
namespace {

using Json = nlohmann::json;

// A value as it may stand in a message: short, on one line.
std::string shown(const Json& value) {
  constexpr std::size_t longest = 60;
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return text;
}

// Keys of transformers' configs that change nothing here and look like others.
bool is_known_elsewhere(std::string_view key) {
  constexpr std::string_view keys[] = {"pad_token_id", "sep_token_id", "cls_token_id", "unk_token_id", "n_ctx"};
  return std::ranges::find(keys, key) != std::end(keys);
}

// Whether one name becomes the other by at most two letters added, left out, changed or swapped with their neighbour.
bool is_slip(std::string_view name, std::string_view known) {
  constexpr std::size_t shortest = 6, most = 2;
  if (name == known || std::min(name.size(), known.size()) < shortest) return false;
  std::vector<std::vector<std::size_t>> distance(name.size() + 1, std::vector<std::size_t>(known.size() + 1));
  for (std::size_t i = 0; i <= name.size(); ++i) {
    for (std::size_t k = 0; k <= known.size(); ++k) {
      if (i == 0 || k == 0) {
        distance[i][k] = i + k;
        continue;
      }
      const std::size_t changed = distance[i - 1][k - 1] + (name[i - 1] == known[k - 1] ? 0 : 1);
      distance[i][k] = std::min({changed, distance[i - 1][k] + 1, distance[i][k - 1] + 1});
      const bool swapped = i > 1 && k > 1 && name[i - 1] == known[k - 2] && name[i - 2] == known[k - 1];
      if (swapped) distance[i][k] = std::min(distance[i][k], distance[i - 2][k - 2] + 1);
    }
  }
  return distance[name.size()][known.size()] <= most;
}

}  // namespace

ConfigReader::ConfigReader(const Json& object, std::string where) : ConfigReader(object, std::move(where), "") {}

ConfigReader::ConfigReader(const Json& object, std::string where, std::string prefix)
    : object_(&object), where_(std::move(where)), prefix_(std::move(prefix)) {}

Json ConfigReader::parse(const std::string& text, const std::string& where) {
  try {
    Json json = parse_json(text);
    if (!json.is_object()) {
      throw DataError(one_line(where + " is not a model configuration", "its JSON is not an object"));
    }
    return json;
  } catch (const JsonFault& fault) {
    if (fault.byte() == 0) throw DataError(one_line(fmt::format("{}: {}", where, fault.what()), "", "correct it"));
    throw DataError(one_line(fmt::format("{} is not valid JSON", where),
                             fmt::format("it breaks at byte {}: {}", fault.byte(), fault.what()),
                             "fetch the file again or correct it"));
  }
}

bool ConfigReader::has(std::string_view key) const {
  asked_.emplace(key);
  const auto found = object_->find(key);
  return found != object_->end() && !found->is_null();
}

const Json& ConfigReader::at(std::string_view key) const {
  if (!has(key)) refuse(key, "it is missing, and there is no safe default");
  return *object_->find(key);
}

void ConfigReader::refuse(std::string_view key, std::string_view why, std::string_view fix) const {
  const std::string name = prefix_ + std::string(key);
  const std::string value = has(key) ? " = " + shown(*object_->find(key)) : std::string();
  throw DataError(one_line(fmt::format("{}: cannot use \"{}\"{}", where_, name, value), why, fix));
}

std::int64_t ConfigReader::size(std::string_view key, std::int64_t largest) const {
  const Json& value = at(key);
  if (!value.is_number_integer()) refuse(key, "a whole number is expected");
  const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(largest);
  if (huge || value.get<std::int64_t>() < 1) refuse(key, fmt::format("it must lie between 1 and {}", largest));
  return value.get<std::int64_t>();
}

std::int64_t ConfigReader::whole(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_number_integer()) refuse(key, "a whole number is expected");
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
    refuse(key, "it is too large");
  }
  return value.get<std::int64_t>();
}

std::int64_t ConfigReader::size_or(std::string_view key, std::int64_t largest, std::int64_t fallback) const {
  return has(key) ? size(key, largest) : fallback;
}

double ConfigReader::number(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_number()) refuse(key, "a number is expected");
  return value.get<double>();
}

double ConfigReader::positive(std::string_view key) const {
  const double value = number(key);
  if (!std::isfinite(value) || value <= 0) refuse(key, "it must be greater than 0");
  return value;
}

double ConfigReader::positive_or(std::string_view key, double fallback) const {
  return has(key) ? positive(key) : fallback;
}

double ConfigReader::non_negative_or(std::string_view key, double fallback) const {
  if (!has(key)) return fallback;
  const double value = number(key);
  if (!std::isfinite(value) || value < 0) refuse(key, "it must not be negative");
  return value;
}

bool ConfigReader::flag_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  const Json& value = at(key);
  if (!value.is_boolean()) refuse(key, "true or false is expected");
  return value.get<bool>();
}

std::string ConfigReader::text(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_string()) refuse(key, "a string is expected");
  return value.get<std::string>();
}

std::string ConfigReader::text_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? text(key) : std::string(fallback);
}

std::vector<std::string> ConfigReader::texts(std::string_view key) const {
  const Json& value = at(key);
  const auto is_text = [](const Json& item) { return item.is_string(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_text)) {
    refuse(key, "a list of strings is expected");
  }
  return value.get<std::vector<std::string>>();
}

std::int64_t ConfigReader::token_id(std::string_view key, const Json& value) const {
  constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
  if (!value.is_number_integer()) refuse(key, "a token id is a whole number");
  const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(largest);
  if (huge || value.get<std::int64_t>() < 0) refuse(key, fmt::format("a token id lies between 0 and {}", largest));
  return value.get<std::int64_t>();
}

std::vector<std::int64_t> ConfigReader::token_ids(std::string_view key) const {
  if (!has(key)) return {};
  const Json& value = at(key);
  if (!value.is_array()) return {token_id(key, value)};
  std::vector<std::int64_t> ids;
  for (const Json& item : value) ids.push_back(token_id(key, item));
  return ids;
}

ConfigReader ConfigReader::object(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_object()) refuse(key, "an object is expected");
  return {value, where_, prefix_ + std::string(key) + "."};
}

void ConfigReader::require(std::initializer_list<std::string_view> keys) const {
  std::vector<std::string> missing;
  for (const std::string_view key : keys) {
    if (!has(key)) missing.push_back(fmt::format("\"{}\"", prefix_ + std::string(key)));
  }
  if (missing.empty()) return;
  std::vector<std::string> hints;
  for (const auto& item : object_->items()) {
    const auto near = std::ranges::find_if(keys, [&](std::string_view key) { return is_slip(item.key(), key); });
    if (near != keys.end()) hints.push_back(fmt::format("{} may mean {}", shown(Json(item.key())), *near));
  }
  throw DataError(one_line(
      fmt::format("{}: {} {} missing", where_, fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are"),
      "there is no safe default", hints.empty() ? "add what is missing" : fmt::format("{}", fmt::join(hints, ", "))));
}

std::vector<std::string> ConfigReader::slips() const {
  std::vector<std::string> lines;
  for (const auto& item : object_->items()) {
    const std::string& key = item.key();
    if (asked_.contains(key) || is_known_elsewhere(key)) continue;
    const auto near = std::ranges::find_if(asked_, [&](const std::string& known) { return is_slip(key, known); });
    if (near == asked_.end()) continue;
    lines.push_back(
        fmt::format("{}: key {} is not known and without effect; is \"{}\" meant?", where_, shown(Json(key)), *near));
  }
  return lines;
}

void ConfigReader::only(std::initializer_list<std::string_view> known) const {
  for (const auto& item : object_->items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end() && !item.value().is_null()) {
      refuse(item.key(), "this key is not implemented here");
    }
  }
}

void ConfigReader::must_be_absent(std::string_view key, std::string_view why) const {
  if (has(key)) refuse(key, why);
}

void ConfigReader::must_be_flag(std::string_view key, bool expected, std::string_view why) const {
  if (flag_or(key, expected) != expected) refuse(key, why);
}

}  // namespace lamina
