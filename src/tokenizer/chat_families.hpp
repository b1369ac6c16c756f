// The families of chat templates: how each is recognised, and what it renders.
#pragma once

#include "chat_skeleton.hpp"

#include <span>
#include <string_view>
#include <vector>

#include <lamina/tokenizer/chat_template.hpp>

namespace lamina {

// A conversation on its way to text.
class ChatWriter {
 public:
  void prompt(std::string_view text) { put(text, false); }
  void answer(std::string_view text) { put(text, true); }
  [[nodiscard]] std::vector<ChatSegment> take() { return std::move(segments_); }

 private:
  void put(std::string_view text, bool trained);
  std::vector<ChatSegment> segments_;
};

struct ChatRequest {
  std::span<const ChatMessage> messages;  // at least one, known roles only
  bool generation;
  const ChatTexts& texts;
  std::string_view bos, eos;
};

struct ChatFamily {
  std::string_view name;
  std::string_view pattern;  // Jinja with {%*%} and @name@ (chat_skeleton.hpp)
  bool needs_bos, needs_eos;
  void (*render)(const ChatRequest& request, ChatWriter& writer);
};

// Tried in order.
[[nodiscard]] std::span<const ChatFamily> chat_families();

}  // namespace lamina
