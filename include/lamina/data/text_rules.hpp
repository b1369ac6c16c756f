// How the lines of JSON files are read.
//
// A line holds one document, in one of these forms:
//   {"text": "..."}                                            the key is `text_key`
//   {"messages": [{"role": "...", "content": "..."}, ...]}     a conversation; the key is `chat_key`
//   {"conversations": [{"from": "human", "value": "..."}]}     the same as ShareGPT writes it, under either key
//   {"prompt": "...", "completion": "..."}                     loss on the completion only; texts, or lists of messages
// Beside a conversation: "tools" and "documents" (lists, or their JSON as text), "chat_template_kwargs", and for
// ShareGPT "system". Other keys that could change the text are refused; further keys are not used, and said once.
#pragma once

#include <string>
#include <vector>

namespace lamina {

struct TextRules {
  std::string chat_key = "auto";  // auto: messages or conversations
  std::string text_key = "text";
  std::vector<std::string> ignored_keys;  // of lines and messages: as if they were not there
  std::string chat_date;                  // YYYY-MM-DD for chat templates that ask for today's; empty: a fixed one
};

// "a, b" as names without the spaces around them.
[[nodiscard]] std::vector<std::string> parse_key_list(const std::string& text);

}  // namespace lamina
