#include "chat_request.hpp"

#include "json_node.hpp"
#include "utf8.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t deepest = 64;

[[noreturn]] void refuse(const std::string& why, const std::string& fix) {
  throw DataError(one_line("cannot render the conversation", why, fix));
}

jinja::Text text_of(const std::string& bytes, std::optional<std::uint32_t> part, bool own) {
  if (utf8::valid_prefix(bytes) != bytes.size()) refuse("a message is not UTF-8", "convert the data");
  jinja::Text text{bytes, 1, 0, {}};
  if (part) text.sources = {*part};
  if (own) {
    text.first = 0;
    text.last = bytes.size();
  }
  return text;
}

jinja::Value value_of(const Json& json, std::optional<std::uint32_t> part, bool own, std::size_t depth = 0) {
  if (depth > deepest) refuse(fmt::format("it is nested deeper than {} levels", deepest), "flatten the data");
  switch (json.type()) {
    case Json::value_t::null:
      return jinja::Value::none();
    case Json::value_t::boolean:
      return jinja::Value(json.get<bool>());
    case Json::value_t::number_integer:
      return jinja::Value(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        refuse("a whole number is beyond 64 bits", "write it as text");
      }
      return jinja::Value(json.get<std::int64_t>());
    case Json::value_t::number_float:
      // A whole number of that size may have lost its last digits when it was read.
      if (std::fabs(json.get<double>()) >= 9.2e18) refuse("a number is beyond 64 bits", "write it as text");
      return jinja::Value(json.get<double>());
    case Json::value_t::string:
      return jinja::Value(text_of(json.get_ref<const std::string&>(), part, own));
    case Json::value_t::array: {
      jinja::List list;
      for (const Json& item : json) list.push_back(value_of(item, part, own, depth + 1));
      return jinja::Value(std::move(list));
    }
    case Json::value_t::object: {
      jinja::Map map;
      for (const auto& [key, item] : json.items()) map.entries.emplace_back(key, value_of(item, part, own, depth + 1));
      return jinja::Value(std::move(map));
    }
    default:
      refuse("it holds what is not JSON", "repair the data");
  }
}

bool is_blank(const Json& json) {
  if (json.is_null()) return true;
  if (json.is_string()) return json.get_ref<const std::string&>().find_first_not_of(" \t\r\n") == std::string::npos;
  return json.is_structured() && json.empty();
}

// The text of a list of text parts.
const Json& only_text(const Json& content) {
  if (content.size() != 1) {
    refuse(fmt::format("a message has {} parts, and the chat template takes text only", content.size()),
           "join the parts in the data");
  }
  return content.front().at("text");
}

void check_parts(const Json& content) {
  for (const Json& part : content) {
    if (!part.is_object() || !part.contains("type") || !part.at("type").is_string()) continue;
    const auto& type = part.at("type").get_ref<const std::string&>();
    if (type != "text")
      refuse(fmt::format("a message has a part of type {}", in_quotes(type)), "only text can be trained on");
    if (!part.contains("text") || !part.at("text").is_string())
      refuse("a part of type text has no text", "repair the data");
  }
}

bool is_text_parts(const Json& content) {
  return content.is_array() && !content.empty() && std::ranges::all_of(content, [](const Json& part) {
           return part.is_object() && part.contains("type") && part.at("type") == "text";
         });
}

constexpr const char* reasoning_names[] = {"reasoning_content", "thinking", "reasoning"};

bool names_reasoning(const std::string& key) {
  return std::ranges::find(reasoning_names, key) != std::end(reasoning_names);
}

// As transformers does: reasoning under each name that templates read, and no keys without a value.
std::vector<std::pair<std::string, const Json*>> entries_of(const Json& message,
                                                            const std::vector<std::string>& ignored) {
  std::vector<std::pair<std::string, const Json*>> entries;
  for (const auto& [key, value] : message.items()) {
    if (value.is_null() || key == "weight" || std::ranges::find(ignored, key) != ignored.end()) continue;
    entries.emplace_back(key, &value);
  }
  const auto find = [&](const std::string& name) {
    return std::ranges::find(entries, name, [](const auto& entry) { return entry.first; });
  };
  for (const char* name : reasoning_names) {
    const auto found = find(name);
    if (found == entries.end()) continue;
    const Json* const reasoning = found->second;
    if (find("thinking") == entries.end()) entries.insert(entries.begin(), {"thinking", reasoning});
    const auto standard = find("reasoning_content");
    if (standard == entries.end()) {
      entries.emplace_back("reasoning_content", reasoning);
    } else {
      standard->second = reasoning;
    }
    break;
  }
  return entries;
}

bool trains(const Json& message) {
  const auto weight = message.find("weight");
  if (weight == message.end() || weight->is_null()) return true;
  if (weight->is_number() && (*weight == 0 || *weight == 1)) return *weight == 1;
  refuse(fmt::format("a message has the weight {}", weight->dump()), "weights are 0 (no loss on it) and 1");
}

}  // namespace

std::uint32_t ChatRequest::add_part(Kind kind, const std::string& key, bool filled) {
  parts_.push_back({kind, messages_.size(), key, filled});
  return static_cast<std::uint32_t>(parts_.size() - 1);
}

jinja::Value ChatRequest::message(const Json& json, const std::vector<std::string>& ignored_keys, bool flatten) {
  if (!json.is_object() || !json.contains("role") || !json.at("role").is_string()) {
    refuse(fmt::format("message {} has no 'role'", messages_.size() + 1), "repair the data");
  }
  jinja::Map map;
  map.message = static_cast<std::int64_t>(messages_.size());
  map.first_part = static_cast<std::uint32_t>(parts_.size());
  for (const auto& [key, pointer] : entries_of(json, ignored_keys)) {
    const Json& held = *pointer;
    const bool content = key == "content";
    if (content && held.is_array()) check_parts(held);
    const Json& value = content && flatten && is_text_parts(held) ? only_text(held) : held;
    const Kind kind = key == "role"                            ? Kind::role
                      : content                                ? Kind::content
                      : key == "tool_calls"                    ? Kind::tool_calls
                      : names_reasoning(key)                   ? Kind::reasoning
                      : (key == "id" || key == "tool_call_id") ? Kind::link
                                                               : Kind::other;
    const std::uint32_t part = add_part(kind, key, !is_blank(value));
    map.entries.emplace_back(key, value_of(value, part, kind != Kind::role));
  }
  messages_.push_back({json.at("role").get<std::string>(), trains(json)});
  return jinja::Value(std::move(map));
}

void ChatRequest::add_list(const Json& conversation, const char* key) {
  const auto found = conversation.find(key);
  if (found == conversation.end() || found->is_null()) return set(key, jinja::Value::none());
  if (!found->is_array()) refuse(fmt::format("'{}' is no list", key), "repair the data");
  const std::uint32_t part = add_part(Kind::list, key, !found->empty());
  variables_.push_back({key, value_of(*found, part, false), part});
}

void ChatRequest::add_arguments(const Json& arguments) {
  if (arguments.is_null()) return;
  if (!arguments.is_object()) refuse("'chat_template_kwargs' is no object", "repair the data");
  for (const auto& [key, value] : arguments.items()) {
    const bool taken = std::ranges::any_of(variables_, [&](const auto& variable) { return variable.name == key; });
    if (taken || key == "add_generation_prompt" || key == "bos_token" || key == "eos_token") {
      refuse(fmt::format("'{}' is given in chat_template_kwargs, too", key), "remove one of them");
    }
    const std::uint32_t part = add_part(Kind::argument, key, true);
    variables_.push_back({key, value_of(value, part, false), part});
  }
}

ChatRequest::ChatRequest(const Json& conversation, const std::vector<std::string>& ignored_keys, bool flatten) {
  const auto list = conversation.find("messages");
  if (list == conversation.end() || !list->is_array() || list->empty()) refuse("it has no messages", "drop it");
  jinja::List messages;
  for (const Json& json : *list) messages.push_back(message(json, ignored_keys, flatten));
  set("messages", jinja::Value(std::move(messages)));
  add_list(conversation, "tools");
  add_list(conversation, "documents");
  if (const auto arguments = conversation.find("chat_template_kwargs"); arguments != conversation.end()) {
    add_arguments(*arguments);
  }
}

void ChatRequest::set(std::string name, jinja::Value value) {
  variables_.push_back({std::move(name), std::move(value), std::nullopt});
}

jinja::Usage ChatRequest::usage() const {
  jinja::Usage usage{std::vector<std::uint8_t>(parts_.size()), std::vector<std::uint8_t>(parts_.size()), {}};
  for (const Part& part : parts_) {
    const bool own = part.message < messages_.size() && part.kind != Kind::role && part.kind != Kind::link;
    usage.owners.push_back(own ? static_cast<std::int64_t>(part.message) : -1);
  }
  return usage;
}

void ChatRequest::check(const jinja::Usage& usage) const {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (!part.filled || part.kind == Kind::role || part.kind == Kind::link) continue;
    const bool read = usage.read[i] != 0, printed = usage.printed[i] != 0;
    if (part.kind == Kind::list || part.kind == Kind::argument) {
      if (part.kind == Kind::list ? printed : read) continue;
      refuse(fmt::format("its '{}' would be lost: the chat template {} it", part.key,
                         part.kind == Kind::list ? "does not write" : "never looks at"),
             "remove it from the data or use a model with a template for it");
    }
    const std::string place = fmt::format("message {} ({})", part.message + 1, messages_[part.message].role);
    if (part.kind == Kind::content || part.kind == Kind::tool_calls) {
      if (printed) continue;
      refuse(fmt::format("'{}' of {} would be lost: the chat template does not write it there", part.key, place),
             "move it to a message where it does, or drop the conversation");
    }
    bool seen = read || printed;
    // Reasoning stands there under several names: one that is looked at is enough.
    std::size_t j = i;
    while (j > 0 && parts_[j - 1].message == part.message) --j;
    for (; part.kind == Kind::reasoning && j < parts_.size() && parts_[j].message == part.message; ++j) {
      seen = seen || (parts_[j].kind == Kind::reasoning && usage.read[j] != 0);
    }
    if (seen) continue;
    refuse(fmt::format("'{}' of {} would be lost: the chat template never looks at it", part.key, place),
           "remove it from the data, or name it in ignore_keys");
  }
}

}  // namespace lamina
