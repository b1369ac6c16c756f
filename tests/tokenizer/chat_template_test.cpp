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
  const bool repairs_order = entry.at("name").get<std::string>().starts_with("mistral0.3");
  if (repairs_order && messages.front().role == "assistant")
    return;  // that template's check is among its tool branches
  if (repairs_order && messages.size() > 1 && messages[0].role == messages[1].role) return;
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
        ChatTemplate::recognize(entry.at("template").get<std::string>(), entry.at("bos"), entry.at("eos"));
    EXPECT_EQ(chat.family(), entry.at("family").get<std::string>());
    for (const auto& item : entry.at("cases")) check_case(entry, item, chat, tokenizer);
  }
}

const std::string plain =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

TEST(ChatTemplate, sees_through_spacing_quotes_and_comments) {
  const std::string respaced =
      "{#- turns -#}\n{%- for   message in messages -%}\n  {{- \"<|im_start|>\" + message.role + \"\\n\"+message "
      "[\"content\"] + "
      "'<|im_end|>' + \"\\n\" -}}\n{%- endfor -%}\n\n{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' "
      "}}{%- endif %}\n";
  EXPECT_EQ(ChatTemplate::recognize(respaced, "", "").family(), "chatml");
}

TEST(ChatTemplate, refuses_what_it_does_not_know) {
  const auto refused = [](const std::string& text) {
    try {
      (void)ChatTemplate::recognize(text, "<s>", "</s>");
    } catch (const DataError&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused(plain));
  for (const char* change : {"<|im_end|>", "message['role'] +", "add_generation_prompt", "for message in messages"}) {
    std::string text = plain;
    text.replace(text.find(change), std::string(change).size(), "x");
    EXPECT_TRUE(refused(text)) << change;
  }
  for (const std::string& text :
       {plain + "more", plain + "{{ eos_token }}", std::string("{{ messages"), std::string("{# open"),
        std::string("{{ 'open }}"), std::string(), std::string(100000, 'x')}) {
    EXPECT_TRUE(refused(text)) << text.substr(0, 200);
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
      known += ChatTemplate::recognize(text, "<s>", "</s>").family().empty() ? 0 : 1;
    } catch (const DataError&) {
    }
  }
  EXPECT_GT(known, 500);
  EXPECT_LT(known, 2500);
}

TEST(ChatTemplate, needs_the_special_tokens_it_writes) {
  const std::string text =
      "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
      "{{ raise_exception('no') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' "
      "[/INST]' }}"
      "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}{{ raise_exception('no') "
      "}}{% endif %}"
      "{% endfor %}";
  EXPECT_EQ(ChatTemplate::recognize(text, "<s>", "</s>").family(), "mistral v0.2");
  EXPECT_THROW((void)ChatTemplate::recognize(text, "", "</s>"), DataError);
  EXPECT_THROW((void)ChatTemplate::recognize(text, "<s>", ""), DataError);
}

TEST(ChatTemplate, trains_on_answers_only) {
  const ChatTemplate chat = ChatTemplate::recognize(plain, "", "");
  const std::vector<ChatMessage> messages = {{"user", "Hi"}, {"assistant", "Yes"}, {"user", "So"}, {"assistant", "No"}};
  std::string trained;
  bool last = true;
  for (const auto& segment : chat.render(messages, false)) {
    EXPECT_NE(segment.trained, last);
    last = segment.trained;
    if (segment.trained) trained += segment.text;
  }
  EXPECT_EQ(trained, "Yes<|im_end|>No<|im_end|>");
  EXPECT_THROW((void)chat.render({}, false), DataError);
  EXPECT_THROW((void)chat.render(std::vector<ChatMessage>{{"tool", "5"}}, false), DataError);
  EXPECT_THROW((void)chat.render(std::vector<ChatMessage>{{"user", "\xF0\x9F"}}, false), DataError);
}

}  // namespace
}  // namespace lamina
