#include "document_line.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <lamina/base/error.hpp>
#include <lamina/base/json.hpp>
#include <lamina/base/text.hpp>

#include <fmt/format.h>

namespace lamina {

std::vector<std::string> parse_key_list(const std::string& text) {
  std::vector<std::string> keys;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view key = trim(rest.substr(0, comma));
    if (!key.empty()) keys.emplace_back(key);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return keys;
}

}  // namespace lamina

namespace lamina::detail {

namespace {

constexpr std::string_view forms =
    "a line holds 'text', or a conversation at 'messages' or 'conversations', or 'prompt' and 'completion'";

// Keys beside a conversation that some trainers turn into text.
constexpr std::array<std::string_view, 14> meaningful = {
    "functions", "function_call", "tool_choice", "system", "image",    "images",      "audio",
    "audios",    "video",         "videos",      "chosen", "rejected", "instruction", "input"};

[[noreturn]] void refuse(const std::string& problem, std::string_view why, std::string_view fix = "repair the line") {
  throw DataError(one_line(problem, why, fix));
}

// ShareGPT's names of roles.
std::string role_named(const std::string& from, const std::string& here) {
  static const std::vector<std::pair<std::string_view, const char*>> roles = {
      {"human", "user"},          {"user", "user"},        {"gpt", "assistant"},         {"chatgpt", "assistant"},
      {"assistant", "assistant"}, {"model", "assistant"},  {"bot", "assistant"},         {"system", "system"},
      {"tool", "tool"},           {"observation", "tool"}, {"function_response", "tool"}};
  const auto found = std::ranges::find(roles, std::string_view(from), [](const auto& role) { return role.first; });
  if (found == roles.end()) {
    refuse(fmt::format("{} is from '{}'", here, from), "that is no role Lamina knows",
           "use human, gpt, system, observation or function_call");
  }
  return found->second;
}

Json parse_inner(const std::string& text, const std::string& what) {
  try {
    return parse_ordered_json(text);
  } catch (const JsonFault& fault) {
    refuse(fmt::format("{} is not JSON", what), fault.what());
  }
}

// {"from": "function_call", "value": "{\"name\": ..., \"arguments\": ...}"}, or a list of such.
Json tool_calls_of(const std::string& value, const std::string& here) {
  Json functions = parse_inner(value, here);
  if (!functions.is_array()) functions = Json::array({functions});
  Json calls = Json::array();
  for (Json& function : functions) {
    if (!function.is_object() || !function.contains("name") || !function.contains("arguments") ||
        function.size() != 2) {
      refuse(fmt::format("{} is no function call", here), "it holds 'name' and 'arguments'");
    }
    Json call = Json::object();
    call["type"] = "function";
    call["function"] = std::move(function);
    calls.push_back(std::move(call));
  }
  return calls;
}

Json from_sharegpt(const Json& turn, const std::string& here) {
  const std::string& from = text_at(turn, "from", here);
  const std::string& value = text_at(turn, "value", here);
  Json message = Json::object();
  if (from == "function_call") {
    message["role"] = "assistant";
    message["tool_calls"] = tool_calls_of(value, here);
  } else {
    message["role"] = role_named(from, here);
    message["content"] = value;
  }
  for (const auto& [key, more] : turn.items()) {
    if (key != "from" && key != "value") message[key] = more;
  }
  return message;
}

void check_message(const Json& message, const std::string& here) {
  (void)text_at(message, "role", here);
  const auto content = message.find("content");
  const bool calls = message.contains("tool_calls") && !message.at("tool_calls").empty();
  if (content == message.end() || content->is_null()) {
    if (!calls) refuse(fmt::format("{}: no key 'content'", here), "it is needed");
    return;
  }
  if (content->is_string() || content->is_structured()) return;
  refuse(fmt::format("{}: no text at 'content'", here), "it is a text, or a list of parts");
}

Json messages_of(const Json& list, const char* key, const std::string& place) {
  if (!list.is_array() || list.empty()) {
    refuse(fmt::format("{}: no list of messages at '{}'", place, key), "there is no conversation");
  }
  Json out = Json::array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string here = fmt::format("{}: message {}", place, i + 1);
    if (!list[i].is_object()) refuse(fmt::format("{} is not an object", here), "it must have 'role' and 'content'");
    out.push_back(list[i].contains("from") ? from_sharegpt(list[i], here) : list[i]);
    check_message(out.back(), here);
  }
  return out;
}

class LineReader {
 public:
  LineReader(const Json& line, const TextRules& rules, const std::string& place)
      : line_(line), rules_(rules), place_(place) {
    for (const std::string& key : rules.ignored_keys) used_.insert(key);
  }

  DocumentLine run() {
    DocumentLine out;
    const std::string chat = chat_key();
    if (!chat.empty()) {
      out.kind = DocumentLine::Kind::conversation;
      read_conversation(messages_of(use(chat), chat.c_str(), place_), chat, out);
    } else if (present("prompt") && present("completion")) {
      read_completion(out);
    } else {
      if (!present(rules_.text_key)) {
        const bool there = line_.contains(rules_.text_key);
        refuse(fmt::format("{}: no {} '{}'", place_, there ? "text at" : "key", rules_.text_key), forms,
               "repair the line, or name its keys with text_key and chat_key");
      }
      out.text = text_at(line_, rules_.text_key.c_str(), place_);
      used_.insert(rules_.text_key);
    }
    check_rest(out);
    return out;
  }

 private:
  [[nodiscard]] bool present(const std::string& key) const {
    const auto found = line_.find(key);
    return found != line_.end() && !found->is_null() &&
           std::ranges::find(rules_.ignored_keys, key) == rules_.ignored_keys.end();
  }
  const Json& use(const std::string& key) {
    used_.insert(key);
    return line_.at(key);
  }

  [[nodiscard]] std::string chat_key() const {
    if (rules_.chat_key != "auto") return present(rules_.chat_key) ? rules_.chat_key : std::string();
    for (const char* key : {"messages", "conversations"}) {
      if (present(key)) return key;
    }
    return {};
  }

  // A list, or its JSON as text.
  Json list_at(const char* key) {
    const Json& value = use(key);
    Json list = value.is_string()
                    ? parse_inner(value.get_ref<const std::string&>(), fmt::format("{}: '{}'", place_, key))
                    : value;
    if (!list.is_array())
      refuse(fmt::format("{}: no list at '{}'", place_, key), "it is a list, or the JSON of one as text");
    return list;
  }

  void read_conversation(Json messages, const std::string& chat, DocumentLine& out) {
    const bool sharegpt = line_.at(chat).front().contains("from");
    if (sharegpt && present("system")) {
      const std::string& system = text_at(line_, "system", place_);
      if (messages.front().at("role") == "system") {
        refuse(fmt::format("{}: 'system' beside a first message of that role", place_), "one of them would be lost");
      }
      Json first = Json::object();
      first["role"] = "system";
      first["content"] = system;
      used_.insert("system");
      if (!system.empty()) messages.insert(messages.begin(), std::move(first));
    }
    finish_conversation(std::move(messages), out);
  }

  void finish_conversation(Json messages, DocumentLine& out) {
    out.conversation = Json::object();
    out.conversation["messages"] = std::move(messages);
    for (const char* key : {"tools", "documents"}) {
      if (present(key)) out.conversation[key] = list_at(key);
    }
    if (present("chat_template_kwargs")) out.conversation["chat_template_kwargs"] = use("chat_template_kwargs");
  }

  void read_completion(DocumentLine& out) {
    const Json &prompt = use("prompt"), &completion = use("completion");
    if (prompt.is_string() && completion.is_string()) {
      out.kind = DocumentLine::Kind::completion;
      out.text = prompt.get<std::string>();
      out.completion = completion.get<std::string>();
      return;
    }
    out.kind = DocumentLine::Kind::conversation;
    Json messages = messages_of(prompt, "prompt", place_);
    for (Json& message : messages) message["weight"] = 0;
    for (Json& message : messages_of(completion, "completion", place_)) messages.push_back(std::move(message));
    finish_conversation(std::move(messages), out);
  }

  void check_rest(DocumentLine& out) const {
    const bool chat = out.kind == DocumentLine::Kind::conversation;
    const auto is = [](const std::string& key, std::initializer_list<std::string_view> names) {
      return std::ranges::find(names, std::string_view(key)) != names.end();
    };
    for (const auto& [key, value] : line_.items()) {
      if (used_.contains(key) || value.is_null() || (value.is_structured() && value.empty())) continue;
      // Another document, or a part of this one.
      const bool document =
          is(key, {"text", "messages", "conversations", "prompt", "completion"}) || key == rules_.text_key;
      const bool part = is(key, {"tools", "documents", "chat_template_kwargs"}) && !chat;
      if (document || part || (chat && std::ranges::find(meaningful, std::string_view(key)) != meaningful.end())) {
        refuse(fmt::format("{}: key '{}' beside {}", place_, key, chat ? "a conversation" : "a text"),
               "it would be lost", "remove it from the data, or name it in ignore_keys");
      }
      out.unused.push_back(key);
    }
  }

  const Json& line_;
  const TextRules& rules_;
  const std::string& place_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace

DocumentLine read_document_line(const Json& line, const TextRules& rules, const std::string& place) {
  return LineReader(line, rules, place).run();
}

}  // namespace lamina::detail
