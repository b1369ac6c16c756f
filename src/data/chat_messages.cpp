#include "chat_messages.hpp"

#include "json_line.hpp"

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina::detail {

std::vector<ChatMessage> parse_messages(const nlohmann::json& messages, const std::string& place) {
  if (!messages.is_array() || messages.empty()) {
    throw DataError(one_line(fmt::format("{}: no list of messages at 'messages'", place), "there is no conversation",
                             "repair the line"));
  }
  std::vector<ChatMessage> out;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const nlohmann::json& message = messages[i];
    const std::string here = fmt::format("{}: message {}", place, i + 1);
    if (!message.is_object()) {
      throw DataError(
          one_line(fmt::format("{} is not an object", here), "it must have 'role' and 'content'", "repair the line"));
    }
    out.push_back({text_at(message, "role", here), text_at(message, "content", here)});
    for (const auto& [key, value] : message.items()) {
      if (key == "role" || key == "content" || value.is_null()) continue;
      if (key == "tool_calls" && value.is_array() && value.empty()) continue;
      throw DataError(one_line(fmt::format("{} has the key '{}'", here, key),
                               "it would be lost: only role and content are used", "remove it from the data"));
    }
  }
  return out;
}

}  // namespace lamina::detail
