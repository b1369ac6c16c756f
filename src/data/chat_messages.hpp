// Conversations in JSON lines: {"messages": [{"role": "user", "content": "..."}, ...]}.
#pragma once

#include <string>
#include <vector>

#include <lamina/tokenizer/chat_template.hpp>

#include <nlohmann/json.hpp>

namespace lamina::detail {

// `messages` is the value at that key. Throws DataError beginning with `place` for anything but messages of role and
// content: further keys (tool calls, images) would be lost.
[[nodiscard]] std::vector<ChatMessage> parse_messages(const nlohmann::json& messages, const std::string& place);

}  // namespace lamina::detail
