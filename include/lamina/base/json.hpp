// Strict JSON (RFC 8259): the one way in which text becomes values.
//
// Beyond the grammar, a key given twice in one object and deep nesting are refused: which of two values counts is
// nobody's guess, and no stack may overflow.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lamina {

// `what()` says what is wrong, in words for people: "a lone surrogate \ud800", "NaN is no JSON number".
class JsonFault : public std::runtime_error {
 public:
  JsonFault(const std::string& what, std::size_t byte, std::string fix)
      : std::runtime_error(what), byte_(byte), fix_(std::move(fix)) {}
  // Number of the byte, from 1, with which the fault shows.
  [[nodiscard]] std::size_t byte() const { return byte_; }
  // What to do about it; empty: nothing special.
  [[nodiscard]] const std::string& fix() const { return fix_; }

 private:
  std::size_t byte_;
  std::string fix_;
};

inline constexpr std::size_t json_depth = 256;

// Throws JsonFault.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, std::size_t max_depth = json_depth);
// With the keys in the order of the text.
[[nodiscard]] nlohmann::ordered_json parse_ordered_json(std::string_view text, std::size_t max_depth = json_depth);

}  // namespace lamina
