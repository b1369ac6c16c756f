#include <lamina/data/text_rule_options.hpp>
#include <lamina/tokenizer/chat_template.hpp>

#include <fmt/format.h>

namespace lamina {

void add_text_rule_options(ArgumentParser& parser, char hyphen, TextRules& rules, std::string& ignored_keys) {
  const auto name = [hyphen](const char* first) { return std::string(first) + hyphen; };
  parser.option(name("text") + "key", rules.text_key, "KEY", "key of a text in JSON lines");
  parser.option(name("chat") + "key", rules.chat_key, "auto|KEY",
                "key of a conversation in JSON lines; auto: messages or conversations");
  parser.option(name("ignore") + "keys", ignored_keys, "KEY[, KEY ...]",
                "keys of JSON lines and of their messages to leave out");
  parser.option("date", rules.chat_date, "YYYY-MM-DD",
                fmt::format("the date for chat templates that ask for today's; without it {}", default_chat_date));
}

}  // namespace lamina
