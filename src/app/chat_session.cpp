#include "chat_session.hpp"

#include <algorithm>
#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/data/token_source.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

ChatMessage message(std::string role, std::string content) {
  ChatMessage out;
  out.role = std::move(role);
  out.content = std::move(content);
  return out;
}

// A template is a program that does not name its end-of-turn token: it is what follows an answer.
std::optional<std::int32_t> find_end_of_turn(const ChatTemplate& chat, const Tokenizer& tokenizer) {
  const std::string answer = "answer";
  const std::vector<ChatMessage> turns{message("user", "question"), message("assistant", answer)};
  std::string text;
  for (const ChatSegment& segment : chat.render(turns, false)) text += segment.text;
  std::string after = text.substr(text.rfind(answer) + answer.size());
  after.erase(0, after.find_first_not_of(" \n"));
  after.erase(after.find_last_not_of(" \n") + 1);
  return tokenizer.id_of(after);
}

// Of a model that is talked with: what is said without a template for training is no help here.
ChatTemplate template_of(const Tokenizer& tokenizer, const ChatSettings& settings) {
  if (!tokenizer.chat_template()) {
    throw DataError(one_line("cannot chat with this model", "its tokenizer has no chat template",
                             "use lamina generate, or fine-tune it on conversations with a tokenizer that has one"));
  }
  return ChatTemplate::of(tokenizer, settings);
}

}  // namespace

ChatSession::ChatSession(const LoadedModel& model, Backend& backend, const Tokenizer& tokenizer, std::int64_t context,
                         std::string system, TextOptions options, const ChatSettings& settings)
    : tokenizer_(tokenizer),
      template_(template_of(tokenizer, settings)),
      vocab_size_(model.plan.config.vocab_size),
      end_ids_(model.plan.config.eos_ids),
      end_of_turn_(find_end_of_turn(template_, tokenizer)),
      context_(context),
      system_(std::move(system)),
      options_(std::move(options)),
      generator_(model, *backend.device, *backend.ops, context) {
  reset();
}

void ChatSession::reset() {
  messages_.clear();
  if (!system_.empty()) messages_.push_back(message("system", system_));
}

bool ChatSession::ends_turn(std::int32_t token) const {
  return token == end_of_turn_ || std::ranges::find(end_ids_, token) != end_ids_.end();
}

StopReason ChatSession::ask(const std::string& text, const std::function<bool(const std::string&)>& write) {
  std::vector<ChatMessage> turns = messages_;
  turns.push_back(message("user", text));
  std::string rendered;
  for (const ChatSegment& segment : template_.render(turns, true)) rendered += segment.text;
  const std::vector<std::int32_t> prompt = tokenizer_.encode(rendered, false);
  check_token_ids(prompt, vocab_size_, tokenizer_, "the conversation");
  const std::int64_t room = context_ - static_cast<std::int64_t>(prompt.size());
  if (room < 1) {
    throw UsageError(one_line("the conversation is full",
                              fmt::format("with this it has {} tokens of {}", prompt.size(), context_),
                              "say less, or begin anew with /reset"));
  }
  GenerateOptions options;
  options.max_new_tokens = std::min(options_.max_tokens, room);
  options.sampling = options_.sampling(turns_);
  options.keep_common_prefix = true;
  StreamDecoder decoder(tokenizer_, true);
  bool ended = false;
  Generated answer = generator_.generate(prompt, options, [&](std::int32_t token) {
    ended = ends_turn(token);
    return !ended && write(decoder.push(token));
  });
  write(decoder.finish());
  ++turns_;
  if (ended) answer.tokens.pop_back();
  messages_ = std::move(turns);
  messages_.push_back(message("assistant", tokenizer_.decode(answer.tokens, true)));
  if (ended) return StopReason::eos;
  if (answer.reason == StopReason::max_new_tokens && options.max_new_tokens == room) return StopReason::max_positions;
  return answer.reason;
}

}  // namespace lamina
