// Text, ids and loss masks equal to those of transformers (tools/goldens/make_chat_goldens.py wrote them).
#include <filesystem>
#include <random>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/tokenizer/chat_template.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lamina {
namespace {

using Json = nlohmann::json;

const std::filesystem::path goldens = std::filesystem::path(LAMINA_SOURCE_DIR) / "tests/tokenizer/goldens";

std::vector<ChatMessage> messages_of(const Json& list) {
  std::vector<ChatMessage> out;
  for (const auto& message : list) out.push_back({message.at("role"), message.at("content")});
  return out;
}

std::string text_of(const std::vector<ChatSegment>& segments) {
  std::string out;
  for (const auto& segment : segments) out += segment.text;
  return out;
}

void check_case(const Json& entry, const Json& item, const ChatTemplate& chat, const Tokenizer& tokenizer) {
  const auto messages = messages_of(item.at("messages"));
  SCOPED_TRACE(entry.at("name").get<std::string>() + " " + item.at("messages").dump());
  if (item.contains("refused")) {
    EXPECT_THROW((void)chat.render(messages, false), DataError);
    return;
  }
  const std::string family = entry.at("family");
  const bool drops_system = (family == "mistral v0.3" || family == "mistral nemo") &&
                            messages.front().role == "system" && messages.back().role == "assistant";
  if (drops_system) {
    EXPECT_THROW((void)chat.render(messages, false), DataError);
    return;
  }
  EXPECT_EQ(text_of(chat.render(messages, false)), item.at("text").get<std::string>());
  EXPECT_EQ(text_of(chat.render(messages, true)), item.at("prompt").get<std::string>());
  auto workspace = tokenizer.make_workspace();
  const ChatIds ids = chat.encode(tokenizer, messages, workspace);
  EXPECT_EQ(ids.ids, item.at("ids").get<std::vector<std::int32_t>>());
  if (item.contains("trained")) {
    EXPECT_EQ(ids.trained, item.at("trained").get<std::vector<std::uint8_t>>());
  }
}

TEST(ChatTemplate, renders_as_transformers_does) {
  const Json entries = Json::parse(read_file(goldens / "chat.json"));
  ASSERT_GE(entries.size(), 13U);
  for (const auto& entry : entries) {
    const Tokenizer tokenizer = Tokenizer::load(goldens / ("base_" + entry.at("base").get<std::string>() + ".json"));
    const ChatTemplate chat =
        ChatTemplate::parse(entry.at("template").get<std::string>(), entry.at("bos"), entry.at("eos"));
    for (const auto& item : entry.at("cases")) check_case(entry, item, chat, tokenizer);
  }
}

const std::string plain =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

TEST(ChatTemplate, refuses_what_it_cannot_run) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      const std::vector<ChatMessage> messages = {{"user", "Hi"}};
      (void)ChatTemplate::parse(text, "<s>", "</s>").render(messages, false);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(refusal(plain), "no error");
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"{{ messages", "line 1: a tag is not closed"},
           {"\n{# open", "line 2: a comment is not closed"},
           {"{{ 'open }}", "line 1: a text is not closed"},
           {"", "'content' of message 1 (user) would be lost"},
           {std::string(2000000, 'x'), "longer than"},
           {"{% include 'x' %}", "line 1: the statement 'include' is not supported"},
           {"{% for m in messages %}{{ m.content | md5 }}{% endfor %}", "line 1: the filter 'md5' is not supported"},
           {"{% for m in messages %}{{ m.content if m is shiny }}{% endfor %}", "the test 'shiny' is not supported"},
           {"{% for m in messages %}\n{{ now() }}{% endfor %}", "line 2: the function 'now' is not supported"},
           {"{{ raise_exception('not today') }}", "the template refuses it: not today"},
           {"{% for m in messages %}{{ m.content + 1 }}{% endfor %}", "str + int is not possible"},
           {"{% for m in messages %}{{ m.content }}", "'endfor' is missing"},
           {"{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}", "nested too deeply"},
           {"{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", "too deeply"}}) {
    EXPECT_NE(refusal(text).find(words), std::string::npos) << text.substr(0, 100) << ": " << refusal(text);
  }
  EXPECT_THROW((void)ChatTemplate::of(Tokenizer::byte()), DataError);
}

TEST(ChatTemplate, survives_mutated_templates) {
  const Json entries = Json::parse(read_file(goldens / "chat.json"));
  std::mt19937 random(3);
  const std::string alphabet = "{}%#-'\"\\[]@ \nx";
  int known = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = entries[random() % entries.size()].at("template").get<std::string>();
    for (std::size_t edits = random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = alphabet[random() % alphabet.size()];
      } else {
        text.erase(at, random() % 8);
      }
    }
    try {
      const std::vector<ChatMessage> messages = {{"user", "Hi"}, {"assistant", "Yes"}};
      known += ChatTemplate::parse(text, "<s>", "</s>").render(messages, true).empty() ? 0 : 1;
    } catch (const DataError&) {
    }
  }
  EXPECT_GT(known, 500);
  EXPECT_LT(known, 2900);
}

TEST(ChatTemplate, needs_the_special_tokens_it_writes) {
  const std::string text =
      "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
      "{{ raise_exception('no') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' "
      "[/INST]' }}"
      "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}{{ raise_exception('no') "
      "}}{% endif %}"
      "{% endfor %}";
  EXPECT_NO_THROW((void)ChatTemplate::parse(text, "<s>", "</s>"));
  EXPECT_THROW((void)ChatTemplate::parse(text, "", "</s>"), DataError);
  EXPECT_THROW((void)ChatTemplate::parse(text, "<s>", ""), DataError);
}

TEST(ChatTemplate, trains_on_answers_only) {
  const ChatTemplate chat = ChatTemplate::parse(plain, "", "");
  const std::vector<ChatMessage> messages = {{"user", "Hi"}, {"assistant", "Yes"}, {"user", "So"}, {"assistant", "No"}};
  std::string trained;
  bool last = true;
  for (const auto& segment : chat.render(messages, false)) {
    EXPECT_NE(segment.trained, last);
    last = segment.trained;
    if (segment.trained) trained += segment.text;
  }
  EXPECT_EQ(trained, "Yes<|im_end|>No<|im_end|>");
  EXPECT_THROW((void)chat.render(std::vector<ChatMessage>(), false), DataError);
  EXPECT_THROW((void)chat.render(std::vector<ChatMessage>{{"user", "\xF0\x9F"}}, false), DataError);
}

}  // namespace
}  // namespace lamina
