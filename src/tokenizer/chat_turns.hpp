// Which bytes of a rendered conversation are trained on.
#pragma once

#include "chat_request.hpp"
#include "jinja_evaluator.hpp"

#include <string>
#include <utility>
#include <vector>

#include <lamina/tokenizer/chat_template.hpp>

namespace lamina {

// What stands before an answer.
struct ChatHeaders {
  std::string prompt;  // what add_generation_prompt adds; empty: nothing, or not known
  std::string answer;  // without it: what an answer's turn begins with
};

using ByteRange = std::pair<std::size_t, std::size_t>;

// Ascending and disjoint. Throws DataError when an answer cannot be told from what is around it.
[[nodiscard]] std::vector<ByteRange> trained_ranges(const jinja::Output& output, const std::vector<ChatRole>& messages,
                                                    const ChatHeaders& headers);

[[nodiscard]] std::vector<ChatSegment> segments_of(const std::string& text, const std::vector<ByteRange>& trained);

// `text` without white space at its end.
[[nodiscard]] std::size_t size_without_space(std::string_view text);

}  // namespace lamina
