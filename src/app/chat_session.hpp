// A conversation with a model: turns rendered by the tokenizer's chat template, answers generated and streamed.
#pragma once

#include "text_options.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <lamina/backends/backend.hpp>
#include <lamina/model/generator.hpp>
#include <lamina/tokenizer/chat_template.hpp>

namespace lamina {

class ChatSession {
 public:
  // For conversations of at most `context` tokens, answers included. `system` (if not empty) begins each. The model,
  // backend and tokenizer must outlive it. Throws DataError for a tokenizer without a chat template, or with one that
  // Lamina cannot run.
  ChatSession(const LoadedModel& model, Backend& backend, const Tokenizer& tokenizer, std::int64_t context,
              std::string system, TextOptions options, const ChatSettings& settings = {});

  // Forgets all turns.
  void reset();
  // Appends the user's turn and the model's answer, whose text `write` gets as it comes; when `write` returns false the
  // answer ends there. Throws UsageError when the conversation leaves no room, and DataError for text that is not
  // UTF-8; the conversation is then as before.
  [[nodiscard]] StopReason ask(const std::string& text, const std::function<bool(const std::string&)>& write);

 private:
  [[nodiscard]] bool ends_turn(std::int32_t token) const;

  const Tokenizer& tokenizer_;
  ChatTemplate template_;
  std::int64_t vocab_size_;
  std::vector<std::int64_t> end_ids_;        // the model's ends of text
  std::optional<std::int32_t> end_of_turn_;  // what the template writes behind an answer
  std::int64_t context_;
  std::string system_;
  TextOptions options_;
  Generator generator_;
  std::vector<ChatMessage> messages_;
  std::uint64_t turns_ = 0;
};

}  // namespace lamina
