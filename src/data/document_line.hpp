// What one line of a JSON file holds (text_rules.hpp has the forms).
#pragma once

#include "json_line.hpp"

#include <optional>
#include <string>
#include <vector>

#include <lamina/data/text_rules.hpp>

namespace lamina::detail {

struct DocumentLine {
  enum class Kind { text, conversation, completion } kind = Kind::text;
  std::string text;  // of a text; the prompt of a completion
  std::string completion;
  Json conversation;                // as ChatTemplate takes it
  std::vector<std::string> unused;  // keys of the line
};

// Throws DataError beginning with `place` for anything else, and for keys that would be lost.
[[nodiscard]] DocumentLine read_document_line(const Json& line, const TextRules& rules, const std::string& place);

}  // namespace lamina::detail
