// Lines of JSONL files as JSON objects.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lamina::detail {

// In the order of the text: a chat template may write it again.
using Json = nlohmann::ordered_json;

// Throws DataError "PLACE: ..." with the byte of the line where it breaks; also for values that are not objects, for a
// key given twice in the object, and for text that is not UTF-8.
[[nodiscard]] Json parse_json_line(std::string_view line, const std::string& place);

// The text at `key`. Throws DataError if it is missing or not text.
[[nodiscard]] const std::string& text_at(const Json& object, const char* key, const std::string& place);

// Calls `take` with each line that is not blank and its number from 1. A carriage return before the line's end is not
// part of it.
void for_each_line(std::string_view text, const std::function<void(std::string_view line, std::size_t number)>& take);

[[nodiscard]] bool is_blank(std::string_view line);

}  // namespace lamina::detail
