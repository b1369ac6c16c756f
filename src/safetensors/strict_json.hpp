// JSON without the freedoms that hide damage.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lamina {

// Parses one JSON value of at most `deepest` levels. Throws DataError about `where` for a syntax error, bytes that are
// not UTF-8, a key that an object holds twice, or deeper nesting.
[[nodiscard]] nlohmann::json parse_strict_json(std::string_view text, int deepest, const std::string& where);

}  // namespace lamina
