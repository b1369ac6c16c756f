// Conversations to text and ids, as their model's chat template writes them.
//
// A chat template is a Jinja program, from tokenizer_config.json or chat_template.jinja. Lamina runs the part of Jinja
// that such programs use (src/tokenizer/jinja_syntax.hpp); what lies beyond is refused by name and line. Text equals
// that of transformers' apply_chat_template with the same messages, tools, documents and further arguments, except that
// the date is a fixed one unless one is given: data must not change with the day.
//
// Nothing of a conversation is lost in silence: a message whose content does not reach the text, tools or tool calls
// that the template does not write, and keys that it never looks at, are refused. Ids that only link messages
// ("id", "tool_call_id") are the exception, and what a template drops knowingly (such as earlier reasoning).
//
// Loss falls on {% generation %} blocks where the template has some, else on the assistant's turns: what follows the
// turn's header (the generation prompt, where the template has one), up to and including its end-of-turn token. A
// message with "weight": 0 has none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/tokenizer/tokenizer.hpp>

#include <nlohmann/json_fwd.hpp>

namespace lamina {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool", ...
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

struct ChatSettings {
  std::string date;                       // YYYY-MM-DD, for templates that ask for today's; empty: default_chat_date
  std::vector<std::string> ignored_keys;  // of messages: as if they were not there
};
inline constexpr std::string_view default_chat_date = "2024-07-26";  // that of Llama 3's templates

// All const members may be called from many threads at once.
class ChatTemplate {
 public:
  // The template of a tokenizer. Throws DataError when it has none or one that Lamina cannot run, UsageError for a
  // date that is none or that the template does not ask for.
  [[nodiscard]] static ChatTemplate of(const Tokenizer& tokenizer, const ChatSettings& settings = {});
  // From a template's text and the texts of the tokenizer's special tokens (empty: it has none).
  [[nodiscard]] static ChatTemplate parse(std::string_view text, std::string bos, std::string eos,
                                          const ChatSettings& settings = {});

  // The template asks for today's date.
  [[nodiscard]] bool asks_for_date() const;
  [[nodiscard]] const std::string& date() const;  // YYYY-MM-DD, that it is told

  // The conversation in order; neighbouring segments differ in `trained`. With `add_generation_prompt` the header of an
  // answer follows. Throws DataError for what the template refuses and for what would be lost.
  [[nodiscard]] std::vector<ChatSegment> render(std::span<const ChatMessage> messages,
                                                bool add_generation_prompt) const;
  // The same for {"messages": [...], "tools": [...], "documents": [...], "chat_template_kwargs": {...}}, of which only
  // the messages are needed. Content is a text, or a list of parts {"type": "text", "text": ...}.
  [[nodiscard]] std::vector<ChatSegment> render(const nlohmann::ordered_json& conversation,
                                                bool add_generation_prompt) const;

  // Ids of the whole text (no special tokens beyond the template's own) and where loss falls. A token that straddles
  // an end of an answer counts as the answer's.
  [[nodiscard]] ChatIds encode(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                               TokenizerWorkspace& workspace) const;
  [[nodiscard]] ChatIds encode(const Tokenizer& tokenizer, const nlohmann::ordered_json& conversation,
                               TokenizerWorkspace& workspace) const;

 private:
  struct Program;
  explicit ChatTemplate(std::shared_ptr<const Program> program);
  std::shared_ptr<const Program> program_;
};

// Ids of the segments' joined text (no special tokens added), and which of them are trained.
[[nodiscard]] ChatIds encode_segments(const Tokenizer& tokenizer, std::span<const ChatSegment> segments,
                                      TokenizerWorkspace& workspace);

}  // namespace lamina
