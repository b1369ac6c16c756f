// Conversations to text and ids, as the chat templates of the supported families write them.
//
// A chat template is a Jinja program. Lamina does not run it: it recognises the programs of these families by their
// statements (whatever the spacing, quotes and tool-calling branches) and renders what they would, reading default
// system prompts and markers from the text itself: ChatML (Qwen2, Qwen2.5, Qwen3, SmolLM2 and plain), Llama 3 to 3.3,
// Llama 2, Mistral 7B v0.1 to v0.3. Any other template is refused.
//
// Text equals that of transformers' apply_chat_template without tools, except that Llama 3.2's date is the one its
// template falls back to, not today's: data must not change with the day.
//
// Loss falls on the assistant's turns only: what follows the turn's header, up to and including its end-of-turn token.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/tokenizer/tokenizer.hpp>

namespace lamina {

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

struct ChatSegment {
  std::string text;
  bool trained;  // the assistant's: content and end of turn
};

struct ChatIds {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> trained;  // for each id, 1 when loss falls on it
};

class ChatTemplate {
 public:
  // The template of a tokenizer. Throws DataError when it has none or one that is not known.
  [[nodiscard]] static ChatTemplate of(const Tokenizer& tokenizer);
  // From a template's text and the texts of the tokenizer's special tokens (empty: it has none).
  [[nodiscard]] static ChatTemplate recognize(std::string_view text, std::string bos, std::string eos);

  [[nodiscard]] const std::string& family() const { return family_; }

  // The conversation in order; neighbouring segments differ in `trained`. With `add_generation_prompt` the header of an
  // answer follows. Throws DataError for roles or orders the template refuses.
  [[nodiscard]] std::vector<ChatSegment> render(std::span<const ChatMessage> messages,
                                                bool add_generation_prompt) const;

  // Ids of the whole text (no special tokens beyond the template's own) and where loss falls. A token that straddles
  // the start of an answer counts as the answer's.
  [[nodiscard]] ChatIds encode(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                               TokenizerWorkspace& workspace) const;

 private:
  std::string family_;
  std::map<std::string, std::string> texts_;  // markers and prompts read from the template
  std::string bos_, eos_;
};

}  // namespace lamina
