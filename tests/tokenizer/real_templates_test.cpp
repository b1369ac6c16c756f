// Thirty templates of published models, rendered as transformers does (tools/goldens/make_template_goldens.py), with
// tools, tool calls, reasoning and parts; and chats of any length in linear time.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/tokenizer/chat_template.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lamina {
namespace {

using Json = nlohmann::ordered_json;

const std::filesystem::path goldens = std::filesystem::path(LAMINA_SOURCE_DIR) / "tests/tokenizer/goldens";

ChatTemplate load(const std::string& name) {
  return ChatTemplate::parse(read_file(goldens / "templates" / (name + ".jinja")), "<s>", "</s>");
}

std::string text_of(const std::vector<ChatSegment>& segments) {
  std::string out;
  for (const auto& segment : segments) out += segment.text;
  return out;
}

std::string trained_of(const std::vector<ChatSegment>& segments) {
  std::string out;
  for (const auto& segment : segments) out += segment.trained ? segment.text + "|" : "";
  return out;
}

bool has_parts(const Json& conversation) {
  return std::ranges::any_of(conversation.at("messages"), [](const Json& message) {
    return message.contains("content") && message.at("content").is_array();
  });
}

// Templates that know no parts fail, leave them out or write Python's form of the list: Lamina gives them the text.
bool spoilt_by_parts(const Json& item) {
  if (!has_parts(item.at("conversation"))) return false;
  const std::string text = item.contains("refused") ? std::string() : item.at("text").get<std::string>();
  return text.find("Part one") == std::string::npos || text.find("{'type'") != std::string::npos;
}

// A refusal must be right: what is named is really not in transformers' text.
void check_lost(const Json& item, const std::string& error) {
  const std::string text = item.at("text");
  ASSERT_NE(error.find("would be lost"), std::string::npos) << error;
  const auto absent = [&](const char* named, const char* word) {
    return error.find(named) == std::string::npos || text.find(word) == std::string::npos;
  };
  EXPECT_TRUE(absent("'tools'", "Weather of a")) << text;
  EXPECT_TRUE(absent("'tool_calls'", "K\u00f6ln")) << text;
  EXPECT_TRUE(absent("(assistant)", "step by step")) << text;
}

void check_case(const ChatTemplate& chat, const Json& item, std::map<std::string, int>& counts) {
  if (spoilt_by_parts(item)) return;
  const Json& conversation = item.at("conversation");
  std::vector<ChatSegment> segments;
  try {
    segments = chat.render(conversation, false);
  } catch (const DataError& error) {
    ++counts[item.contains("refused") ? "refused" : "lost"];
    if (!item.contains("refused")) check_lost(item, error.what());
    return;
  }
  ASSERT_FALSE(item.contains("refused")) << text_of(segments);
  ++counts["same"];
  EXPECT_EQ(text_of(segments), item.at("text").get<std::string>());
  EXPECT_EQ(text_of(chat.render(conversation, true)), item.at("prompt").get<std::string>());
  if (!item.contains("trained")) return;
  std::string trained;
  for (const auto& part : item.at("trained")) trained += part.get<std::string>();
  std::string ours = trained_of(segments);
  std::erase(ours, '|');
  std::erase(trained, '|');
  EXPECT_EQ(ours, trained);
}

TEST(RealTemplates, render_as_transformers_does) {
  const Json entries = Json::parse(read_file(goldens / "chat_templates.json"));
  ASSERT_GE(entries.size(), 28U);
  std::map<std::string, int> counts;
  for (const auto& entry : entries) {
    const ChatTemplate chat = load(entry.at("name"));
    int number = 0;
    for (const auto& item : entry.at("cases")) {
      SCOPED_TRACE(fmt::format("{} {}", entry.at("name").get<std::string>(), ++number));
      check_case(chat, item, counts);
    }
  }
  EXPECT_GE(counts["same"], 215);
  EXPECT_GE(counts["refused"], 60);
}

TEST(RealTemplates, write_tools_where_they_have_a_place_for_them) {
  const Json entries = Json::parse(read_file(goldens / "chat_templates.json"));
  for (const char* name : {"qwen2_5", "qwen3", "llama3_1", "llama3_2", "mistral_v0.3", "lfm2", "glm4moe"}) {
    const auto entry = std::ranges::find_if(entries, [&](const Json& other) { return other.at("name") == name; });
    ASSERT_NE(entry, entries.end()) << name;
    std::string text;
    try {
      text = text_of(load(name).render(entry->at("cases").at(4).at("conversation"), false));
    } catch (const DataError& error) {
      ADD_FAILURE() << name << ": " << error.what();
    }
    EXPECT_NE(text.find("get_weather"), std::string::npos) << name;
  }
}

// Without marks, what is trained on is what the marked template says, but for the line end behind a turn.
TEST(RealTemplates, find_the_answers_that_marks_would_name) {
  const Json entries = Json::parse(read_file(goldens / "chat_templates.json"));
  int compared = 0;
  for (const auto& entry : entries) {
    const std::string name = entry.at("name");
    if (name != "qwen2_5_training" && name != "llama3_training" && name != "qwen3_training") continue;
    const ChatTemplate plain = load(name.substr(0, name.find("_training")));
    for (const auto& item : entry.at("cases")) {
      if (item.contains("refused") || spoilt_by_parts(item)) continue;
      std::vector<ChatSegment> segments;
      try {
        segments = plain.render(item.at("conversation"), false);
      } catch (const DataError&) {
        continue;
      }
      if (text_of(segments) != item.at("text").get<std::string>()) continue;
      std::string wanted;
      for (const auto& part : item.at("trained")) {
        std::string text = part;
        // TRL's mark begins before the header's line end.
        text.erase(0, text.find_first_not_of('\n'));
        text.erase(text.find_last_not_of('\n') + 1);
        wanted += text + "|";
      }
      for (ChatSegment& segment : segments) segment.text.erase(0, segment.text.find_first_not_of('\n'));
      EXPECT_EQ(trained_of(segments), wanted) << name;
      ++compared;
    }
  }
  EXPECT_GE(compared, 15);
}

TEST(RealTemplates, tell_the_date_that_is_given) {
  const std::string text = read_file(goldens / "templates/llama3_2.jinja");
  const std::vector<ChatMessage> messages = {{"user", "Hi"}};
  const auto rendered = [&](const std::string& date) {
    return text_of(ChatTemplate::parse(text, "<s>", "</s>", {date, {}}).render(messages, true));
  };
  EXPECT_NE(rendered("").find("Today Date: 26 Jul 2024\n"), std::string::npos);
  EXPECT_NE(rendered("2025-03-09").find("Today Date: 09 Mar 2025\n"), std::string::npos);
  EXPECT_TRUE(load("llama3_2").asks_for_date());
  EXPECT_FALSE(load("qwen2_5").asks_for_date());
  EXPECT_THROW((void)rendered("yesterday"), UsageError);
  EXPECT_THROW((void)rendered("2025-13-01"), UsageError);
  EXPECT_THROW((void)ChatTemplate::parse(read_file(goldens / "templates/qwen2_5.jinja"), "", "", {"2025-03-09", {}}),
               UsageError);
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(RealTemplates, take_time_in_proportion_to_the_length) {
  const Tokenizer tokenizer = Tokenizer::load(goldens / "base_qwen2.json");
  for (const char* name : {"qwen2_5", "qwen3", "llama3", "vicuna"}) {
    const ChatTemplate chat = load(name);
    const auto time_of = [&](int turns) {
      std::vector<ChatMessage> messages;
      for (int i = 0; i < turns; ++i) {
        messages.push_back({"user", "What is the sum of the numbers one and two and three?"});
        messages.push_back({"assistant", "It is six, as you can count on your fingers quite easily."});
      }
      auto workspace = tokenizer.make_workspace();
      return seconds_of([&] { (void)chat.encode(tokenizer, messages, workspace); });
    };
    (void)time_of(10);
    const double small = std::min({time_of(400), time_of(400), time_of(400)});
    const double large = std::min(time_of(3200), time_of(3200));
    EXPECT_LT(large, 8 * small * 3) << name;  // quadratic time would be 64 times
  }
}

}  // namespace
}  // namespace lamina
