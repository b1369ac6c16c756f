#include "chat_families.hpp"

#include "chat_patterns.hpp"
#include "unicode_tables.hpp"
#include "utf8.hpp"

#include <lamina/base/error.hpp>

namespace lamina {

namespace {

bool is_python_space(char32_t code) { return unicode::is_white_space(code) || (code >= 0x1C && code <= 0x1F); }

// Python's str.strip(), which Jinja's trim calls.
std::string strip(std::string_view text) {
  while (!text.empty() && is_python_space(utf8::decode_first(text).code))
    text.remove_prefix(utf8::decode_first(text).size);
  while (!text.empty() && is_python_space(utf8::decode_last(text).code))
    text.remove_suffix(utf8::decode_last(text).size);
  return std::string(text);
}

std::string_view strip_newlines(std::string_view text, bool left, bool right) {
  while (left && text.starts_with('\n')) text.remove_prefix(1);
  while (right && text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const auto part : parts) out += part;
  return out;
}

[[noreturn]] void refuse(std::string_view why, std::string_view fix) {
  throw DataError(one_line("cannot render the conversation", why, fix));
}

bool starts_with_system(const ChatRequest& request) { return request.messages.front().role == "system"; }

void chatml_turn(const ChatMessage& message, ChatWriter& writer) {
  const bool answer = message.role == "assistant";
  writer.prompt(joined({"<|im_start|>", message.role, "\n"}));
  const std::string body = message.content + "<|im_end|>";
  answer ? writer.answer(body) : writer.prompt(body);
  writer.prompt("\n");
}

void render_chatml(const ChatRequest& request, ChatWriter& writer) {
  const auto system = request.texts.find("system");
  if (system != request.texts.end() && !starts_with_system(request)) chatml_turn({"system", system->second}, writer);
  for (const auto& message : request.messages) chatml_turn(message, writer);
  if (request.generation) writer.prompt("<|im_start|>assistant\n");
}

// Reasoning and answer of a Qwen3 turn.
struct Thought {
  std::string_view reasoning, answer;
};
Thought split_thought(std::string_view content) {
  constexpr std::string_view open = "<think>", close = "</think>";
  const std::size_t first = content.find(close);
  if (first == std::string_view::npos) return {{}, content};
  std::string_view reasoning = strip_newlines(content.substr(0, first), false, true);
  const std::size_t start = reasoning.rfind(open);
  if (start != std::string_view::npos) reasoning.remove_prefix(start + open.size());
  return {strip_newlines(reasoning, true, false),
          strip_newlines(content.substr(content.rfind(close) + close.size()), true, false)};
}

// Earlier turns lose their reasoning; the answers to the last question keep it, the very last even when it is empty.
void render_qwen3(const ChatRequest& request, ChatWriter& writer) {
  const auto messages = request.messages;
  std::size_t last_query = messages.size() - 1;
  for (std::size_t i = messages.size(); i-- > 0;) {
    const auto& message = messages[i];
    if (message.role != "user") continue;
    if (message.content.starts_with("<tool_response>") && message.content.ends_with("</tool_response>")) continue;
    last_query = i;
    break;
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role != "assistant") {
      chatml_turn(messages[i], writer);
      continue;
    }
    const Thought thought = split_thought(messages[i].content);
    std::string body(thought.answer);
    if (i > last_query && (i + 1 == messages.size() || !thought.reasoning.empty())) {
      body = joined({"<think>\n", strip_newlines(thought.reasoning, true, true), "\n</think>\n\n",
                     strip_newlines(thought.answer, true, false)});
    }
    chatml_turn({"assistant", body}, writer);
  }
  if (request.generation) writer.prompt("<|im_start|>assistant\n");
}

void llama3_turn(const ChatMessage& message, ChatWriter& writer) {
  writer.prompt(joined({"<|start_header_id|>", message.role, "<|end_header_id|>\n\n"}));
  const std::string body = strip(message.content) + "<|eot_id|>";
  message.role == "assistant" ? writer.answer(body) : writer.prompt(body);
}

void render_llama3(const ChatRequest& request, ChatWriter& writer) {
  writer.prompt(request.bos);
  auto messages = request.messages;
  if (const auto date = request.texts.find("date"); date != request.texts.end()) {
    writer.prompt(
        joined({"<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: ",
                date->second, "\n\n"}));
    if (starts_with_system(request)) {
      writer.prompt(strip(messages.front().content));
      messages = messages.subspan(1);
    }
    writer.prompt("<|eot_id|>");
  }
  for (const auto& message : messages) llama3_turn(message, writer);
  if (request.generation) writer.prompt("<|start_header_id|>assistant<|end_header_id|>\n\n");
}

// The turns after an optional system message, which must alternate and start with the user.
std::span<const ChatMessage> alternating(const ChatRequest& request, bool allow_system) {
  auto messages = request.messages;
  if (allow_system && starts_with_system(request)) messages = messages.subspan(1);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role != (i % 2 == 0 ? "user" : "assistant")) {
      refuse("the template wants user and assistant in turn, the user first",
             "reorder the messages or drop the conversation");
    }
  }
  return messages;
}

void render_llama2(const ChatRequest& request, ChatWriter& writer) {
  const auto messages = alternating(request, true);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    std::string content = messages[i].content;
    if (i == 0 && starts_with_system(request)) {
      content = joined({"<<SYS>>\n", request.messages.front().content, "\n<</SYS>>\n\n", content});
    }
    if (messages[i].role == "user") {
      writer.prompt(joined({request.bos, "[INST] ", strip(content), " [/INST]"}));
    } else {
      writer.answer(joined({" ", strip(content), " ", request.eos}));
    }
  }
}

enum class SystemPlace { nowhere, first_user, last_message, last_user };

template <SystemPlace place, bool trim_answers>
void render_mistral(const ChatRequest& request, ChatWriter& writer) {
  const auto text = [&](const char* name) {
    const auto found = request.texts.find(name);
    return found == request.texts.end() ? std::string() : found->second;
  };
  const bool system = place != SystemPlace::nowhere && starts_with_system(request);
  const auto messages = alternating(request, place != SystemPlace::nowhere);
  const bool ends_with_user = messages.size() % 2 == 1;
  if (system && place == SystemPlace::last_message && !ends_with_user) {
    refuse("the template drops the system message when an answer comes last",
           "move the system text into the user's message");
  }
  const std::size_t holder = place == SystemPlace::first_user ? 0 : messages.size() - (ends_with_user ? 1 : 2);
  writer.prompt(request.bos);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (i % 2 == 1) {
      const std::string content = trim_answers ? strip(messages[i].content) : messages[i].content;
      writer.answer(joined({text("before_answer"), content, request.eos}));
      writer.prompt(text("after_answer"));
      continue;
    }
    writer.prompt(text("before_user"));
    if (system && i == holder) writer.prompt(request.messages.front().content + "\n\n");
    writer.prompt(messages[i].content + text("after_user"));
  }
}

constexpr ChatFamily families[] = {
    {"chatml", chat_patterns::chatml_plain, false, false, render_chatml},
    {"chatml with a default system prompt", chat_patterns::chatml_default, false, false, render_chatml},
    {"qwen2.5", chat_patterns::qwen25, false, false, render_chatml},
    {"qwen3", chat_patterns::qwen3, false, false, render_qwen3},
    {"llama3", chat_patterns::llama3, true, false, render_llama3},
    {"llama3.1", chat_patterns::llama31, true, false, render_llama3},
    {"llama2", chat_patterns::llama2, true, true, render_llama2},
    {"mistral v0.2", chat_patterns::mistral_v1, true, true, render_mistral<SystemPlace::nowhere, false>},
    {"mistral v0.1", chat_patterns::mistral_v1_spaced, true, true, render_mistral<SystemPlace::nowhere, false>},
    {"mistral v0.2 with system", chat_patterns::mistral_v2, true, true, render_mistral<SystemPlace::first_user, false>},
    {"mistral v0.3", chat_patterns::mistral_v3, true, true, render_mistral<SystemPlace::last_message, true>},
    {"mistral nemo", chat_patterns::mistral_nemo, true, true, render_mistral<SystemPlace::last_message, false>},
    {"mistral v0.3 later", chat_patterns::mistral_v3_user, true, true, render_mistral<SystemPlace::last_user, true>},
};

}  // namespace

void ChatWriter::put(std::string_view text, bool trained) {
  if (text.empty()) return;
  if (segments_.empty() || segments_.back().trained != trained) segments_.push_back({{}, trained});
  segments_.back().text += text;
}

std::span<const ChatFamily> chat_families() { return families; }

}  // namespace lamina
