// A conversation as the variables of a template, and what of it a template has lost.
#pragma once

#include "jinja_evaluator.hpp"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace lamina {

// What rendering needs to know of one message.
struct ChatRole {
  std::string role;
  bool trained;  // its weight is not 0
};

class ChatRequest {
 public:
  // `flatten`: the template takes content as text only. Throws DataError for what is not a conversation.
  ChatRequest(const nlohmann::ordered_json& conversation, const std::vector<std::string>& ignored_keys, bool flatten);

  // A variable that is no part of the conversation.
  void set(std::string name, jinja::Value value);

  [[nodiscard]] const std::vector<jinja::Variable>& variables() const { return variables_; }
  [[nodiscard]] const std::vector<ChatRole>& messages() const { return messages_; }
  [[nodiscard]] jinja::Usage usage() const;

  // Throws DataError naming the first part that did not reach the text.
  void check(const jinja::Usage& usage) const;

 private:
  enum class Kind { role, content, tool_calls, reasoning, link, other, list, argument };
  struct Part {
    Kind kind;
    std::size_t message;  // of the message's parts
    std::string key;
    bool filled;  // there is something that could be lost
  };

  [[nodiscard]] jinja::Value message(const nlohmann::ordered_json& json, const std::vector<std::string>& ignored_keys,
                                     bool flatten);
  std::uint32_t add_part(Kind kind, const std::string& key, bool filled);
  void add_list(const nlohmann::ordered_json& conversation, const char* key);
  void add_arguments(const nlohmann::ordered_json& arguments);

  std::vector<jinja::Variable> variables_;
  std::vector<ChatRole> messages_;
  std::vector<Part> parts_;
};

}  // namespace lamina
