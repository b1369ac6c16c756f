#include "chat_families.hpp"

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

constexpr std::string_view chatml_plain = R"({% for message in messages %}
{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

constexpr std::string_view chatml_default = R"({% for message in messages %}
{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n@system@<|im_end|>\n' }}{% endif %}
{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

constexpr std::string_view qwen25 = R"({%- if tools %}{%*%}{%- else %}
{%- if messages[0]['role'] == 'system' %}{{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
{%- else %}{{- '<|im_start|>system\n@system@<|im_end|>\n' }}{%- endif %}{%- endif %}
{%- for message in messages %}
{%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
{%- elif message.role == "assistant" %}{%*%}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %})";

constexpr std::string_view qwen3 = R"({%- if tools %}{%*%}{%- else %}
{%- if messages[0].role == 'system' %}{{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}{%- endif %}{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}{%*%}
{%- set ns.last_query_index = index %}{%- endif %}{%- endfor %}{%- for message in messages %}{%*%}
{%- if (message.role == "user") or (message.role == "system" and not loop.first) %}{%*%}
{%- if loop.index0 > ns.last_query_index %}{%- if loop.last or (not loop.last and reasoning_content) %}
{{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
{%- else %}{{- '<|im_start|>' + message.role + '\n' + content }}{%- endif %}
{%- else %}{{- '<|im_start|>' + message.role + '\n' + content }}{%- endif %}{%*%}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}{%- endif %})";

constexpr std::string_view llama3 = R"({% set loop_messages = messages %}{% for message in loop_messages %}
{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}
{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}
{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %})";

constexpr std::string_view llama31 = R"({{- bos_token }}{%*%}{%- set date_string = "@date@" %}{%*%}
{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content']|trim %}
{%- set messages = messages[1:] %}{%- else %}{%- set system_message = "" %}{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}{%*%}
{{- "Cutting Knowledge Date: December 2023\n" }}{{- "Today Date: " + date_string + "\n\n" }}{%*%}
{{- system_message }}{{- "<|eot_id|>" }}{%*%}{%- for message in messages %}
{%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- elif 'tool_calls' in message %}{%*%}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %})";

constexpr std::string_view llama2 = R"({% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}
{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}
{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('@error@') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}
{% set content = '<<SYS>>\n' + system_message + '\n<</SYS>>\n\n' + message['content'] %}
{% else %}{% set content = message['content'] %}{% endif %}
{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{%*%}
{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %})";

constexpr std::string_view mistral_v1 = R"({{ bos_token }}{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('@error@') }}{% endif %}
{% if message['role'] == 'user' %}{{ '@before_user@' + message['content'] + '@after_user@' }}
{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token }}
{% else %}{{ raise_exception('@other@') }}{% endif %}{% endfor %})";

constexpr std::string_view mistral_v1_spaced = R"({{ bos_token }}{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('@error@') }}{% endif %}
{% if message['role'] == 'user' %}{{ '@before_user@' + message['content'] + '@after_user@' }}
{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token + '@after_answer@' }}
{% else %}{{ raise_exception('@other@') }}{% endif %}{% endfor %})";

constexpr std::string_view mistral_v2 = R"({%- if messages[0]['role'] == 'system' %}
{%- set system_message = messages[0]['content'] %}{%- set loop_messages = messages[1:] %}{%- else %}
{%- set loop_messages = messages %}{%- endif %}{{- bos_token }}{%- for message in loop_messages %}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('@error@') }}{%- endif %}
{%- if message['role'] == 'user' %}{%- if loop.first and system_message is defined %}
{{- '@before_user@' + system_message + '\n\n' + message['content'] + '@after_user@' }}{%- else %}
{{- '@before_user@' + message['content'] + '@after_user@' }}{%- endif %}{%- elif message['role'] == 'assistant' %}
{{- '@before_answer@' + message['content'] + eos_token}}{%- else %}{{- raise_exception('@other@') }}{%- endif %}{%- endfor %})";

// v0.3 with tools; the system text goes into the last message, or (a later edition) into the user's last.
constexpr std::string_view mistral_v3 = R"({%- if messages[0]["role"] == "system" %}
{%- set system_message = messages[0]["content"] %}{%- set loop_messages = messages[1:] %}{%- else %}
{%- set loop_messages = messages %}{%- endif %}{%*%}{{- bos_token }}{%- for message in loop_messages %}
{%- if message["role"] == "user" %}{%*%}{%- if loop.last and system_message is defined %}
{{- "@before_user@" + system_message + "\n\n" + message["content"] + "@after_user@" }}{%- else %}
{{- "@before_user@" + message["content"] + "@after_user@" }}{%- endif %}{%*%}{%- elif message["role"] == "assistant" %}
{{- "@before_answer@" + message["content"]|trim + eos_token}}{%*%}{%- endfor %})";

constexpr std::string_view mistral_v3_user = R"({%- if messages[0]["role"] == "system" %}
{%- set system_message = messages[0]["content"] %}{%- set loop_messages = messages[1:] %}{%- else %}
{%- set loop_messages = messages %}{%- endif %}{%*%}{{- bos_token }}{%- for message in loop_messages %}
{%- if message["role"] == "user" %}{%*%}{%- if (message == user_messages[-1]) and system_message is defined %}
{{- "@before_user@" + system_message + "\n\n" + message["content"] + "@after_user@" }}{%- else %}
{{- "@before_user@" + message["content"] + "@after_user@" }}{%- endif %}{%*%}{%- elif message["role"] == "assistant" %}
{{- "@before_answer@" + message["content"]|trim + eos_token}}{%*%}{%- endfor %})";

constexpr ChatFamily families[] = {
    {"chatml", chatml_plain, false, false, render_chatml},
    {"chatml with a default system prompt", chatml_default, false, false, render_chatml},
    {"qwen2.5", qwen25, false, false, render_chatml},
    {"qwen3", qwen3, false, false, render_qwen3},
    {"llama3", llama3, true, false, render_llama3},
    {"llama3.1", llama31, true, false, render_llama3},
    {"llama2", llama2, true, true, render_llama2},
    {"mistral v0.2", mistral_v1, true, true, render_mistral<SystemPlace::nowhere, false>},
    {"mistral v0.1", mistral_v1_spaced, true, true, render_mistral<SystemPlace::nowhere, false>},
    {"mistral v0.2 with system", mistral_v2, true, true, render_mistral<SystemPlace::first_user, false>},
    {"mistral v0.3", mistral_v3, true, true, render_mistral<SystemPlace::last_message, true>},
    {"mistral v0.3 later", mistral_v3_user, true, true, render_mistral<SystemPlace::last_user, true>},
};

}  // namespace

void ChatWriter::put(std::string_view text, bool trained) {
  if (text.empty()) return;
  if (segments_.empty() || segments_.back().trained != trained) segments_.push_back({{}, trained});
  segments_.back().text += text;
}

std::span<const ChatFamily> chat_families() { return families; }

}  // namespace lamina
