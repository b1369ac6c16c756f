#include "chat_families.hpp"
#include "json_node.hpp"
#include "utf8.hpp"

#include <algorithm>
#include <stdexcept>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/tokenizer/chat_template.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::size_t longest_template = 65536;
constexpr std::string_view known = "known: ChatML (Qwen2 to Qwen3, SmolLM2), Llama 2 to 3.3, Mistral 7B";

// The families' patterns as skeletons. They are written over several lines for the reader; line ends carry no meaning
// there.
const std::vector<std::string>& pattern_skeletons() {
  static const std::vector<std::string> skeletons = [] {
    std::vector<std::string> out;
    for (const auto& family : chat_families()) {
      std::string text(family.pattern);
      std::erase(text, '\n');
      out.push_back(chat_skeleton(text));
    }
    return out;
  }();
  return skeletons;
}

const ChatFamily& family_named(std::string_view name) {
  const auto families = chat_families();
  const auto found =
      std::find_if(families.begin(), families.end(), [&](const auto& family) { return family.name == name; });
  require(found != families.end(), "a recognised template has a family");
  return *found;
}

[[noreturn]] void refuse(std::string_view why, std::string_view fix) {
  throw DataError(one_line("cannot use the chat template", why, fix));
}

void check_roles(std::span<const ChatMessage> messages) {
  if (messages.empty()) throw DataError(one_line("cannot render the conversation", "it has no messages", "drop it"));
  for (const auto& message : messages) {
    if (utf8::valid_prefix(message.content) != message.content.size()) {
      throw DataError(one_line("cannot render the conversation", "a message is not UTF-8", "convert the data"));
    }
    if (message.role == "system" || message.role == "user" || message.role == "assistant") continue;
    throw DataError(one_line("cannot render the conversation",
                             fmt::format("role {} is not supported", in_quotes(message.role)),
                             "use system, user and assistant"));
  }
}

}  // namespace

ChatTemplate ChatTemplate::recognize(std::string_view text, std::string bos, std::string eos) {
  if (text.size() > longest_template) refuse(fmt::format("it is longer than {} bytes", longest_template), known);
  std::string skeleton;
  try {
    skeleton = chat_skeleton(text);
  } catch (const std::invalid_argument& error) {
    refuse(error.what(), "check chat_template in tokenizer_config.json");
  }
  for (std::size_t i = 0; i < chat_families().size(); ++i) {
    const ChatFamily& family = chat_families()[i];
    auto texts = match_skeleton(pattern_skeletons()[i], skeleton);
    if (!texts) continue;
    if (family.needs_bos && bos.empty())
      refuse("it uses bos_token, and the tokenizer names none", "add it to tokenizer_config.json");
    if (family.needs_eos && eos.empty())
      refuse("it uses eos_token, and the tokenizer names none", "add it to tokenizer_config.json");
    ChatTemplate result;
    result.family_ = family.name;
    result.texts_ = std::move(*texts);
    result.bos_ = std::move(bos);
    result.eos_ = std::move(eos);
    return result;
  }
  refuse("it is none that Lamina knows", known);
}

ChatTemplate ChatTemplate::of(const Tokenizer& tokenizer) {
  if (!tokenizer.chat_template()) {
    refuse("the tokenizer has none", "add chat_template to tokenizer_config.json or use data with a text field");
  }
  const auto text_of = [&](std::optional<std::int32_t> id) { return id ? tokenizer.token_of(*id).value_or("") : ""; };
  return recognize(*tokenizer.chat_template(), text_of(tokenizer.bos()), text_of(tokenizer.eos()));
}

std::vector<ChatSegment> ChatTemplate::render(std::span<const ChatMessage> messages, bool add_generation_prompt) const {
  check_roles(messages);
  ChatWriter writer;
  family_named(family_).render({messages, add_generation_prompt, texts_, bos_, eos_}, writer);
  return writer.take();
}

ChatIds ChatTemplate::encode(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                             TokenizerWorkspace& workspace) const {
  const std::vector<ChatSegment> segments = render(messages, false);
  std::string text;
  for (const auto& segment : segments) text += segment.text;
  ChatIds result;
  tokenizer.encode_append(text, false, workspace, result.ids);
  result.trained.resize(result.ids.size());
  // A boundary in the text lies behind the ids it shares with the text before it.
  std::vector<std::int32_t> before;
  std::size_t bytes = 0, from = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    bytes += segments[i].text.size();
    std::size_t to = result.ids.size();
    if (i + 1 < segments.size()) {
      before.clear();
      tokenizer.encode_append(std::string_view(text).substr(0, bytes), false, workspace, before);
      const auto shared = std::mismatch(result.ids.begin(), result.ids.end(), before.begin(), before.end()).first;
      to = std::max(from, static_cast<std::size_t>(shared - result.ids.begin()));
    }
    std::fill(result.trained.begin() + static_cast<std::ptrdiff_t>(from),
              result.trained.begin() + static_cast<std::ptrdiff_t>(to), static_cast<std::uint8_t>(segments[i].trained));
    from = to;
  }
  return result;
}

}  // namespace lamina
