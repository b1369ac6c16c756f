#include "data/scratch_folder.hpp"

#include <lamina/data/document_encoder.hpp>
#include <lamina/data/multiple_choice.hpp>
#include <lamina/data/token_source.hpp>
#include <lamina/tokenizer/byte_tokenizer.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace lamina {
namespace {

using test::error_of;
using test::ScratchFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int32_t> all_tokens(const TokenSource& source) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(source.size()));
  source.read(0, ids);
  return ids;
}

TEST(TextSource, ATextFileIsItsBytes) {
  const ScratchFolder folder;
  const Tokenizer tokenizer = Tokenizer::byte();
  const auto source = open_token_source(folder.write("a.txt", std::string("ab\xff\n")), &tokenizer);
  EXPECT_THAT(all_tokens(*source), ElementsAre('a', 'b', 255, '\n'));
  EXPECT_THAT(source->document_starts(), ElementsAre(0));
  EXPECT_EQ(source->declared_vocab(), 257);
  EXPECT_FALSE(source->has_loss_mask());
  EXPECT_EQ(open_token_source(folder.write("empty.txt", ""), &tokenizer)->size(), 0);
}

TEST(TextSource, JsonLinesAreDocuments) {
  const ScratchFolder folder;
  const Tokenizer tokenizer = Tokenizer::byte();
  const auto path = folder.write("a.jsonl", "{\"text\": \"a\\n\"}\r\n\n{\"id\": 1, \"text\": \"\"}\n{\"text\": \"b\"}");
  const auto source = open_token_source(path, &tokenizer);
  EXPECT_THAT(all_tokens(*source), ElementsAre('a', '\n', 256, 256, 'b', 256));
  EXPECT_THAT(source->document_starts(), ElementsAre(0, 3, 4));
}

TEST(TextSource, AByteOrderMarkIsNoText) {
  const ScratchFolder folder;
  const Tokenizer tokenizer = Tokenizer::byte();
  const auto ids_of = [&](const char* name, const std::string& text) {
    return all_tokens(*open_token_source(folder.write(name, text), &tokenizer));
  };
  EXPECT_THAT(ids_of("a.txt", "\xEF\xBB\xBFok"), ElementsAre('o', 'k'));
  EXPECT_THAT(ids_of("b.txt", "o\xEF\xBB\xBF"), ElementsAre('o', 0xEF, 0xBB, 0xBF)) << "elsewhere it is a character";
  EXPECT_TRUE(ids_of("c.txt", "\xEF\xBB\xBF").empty());
  EXPECT_THAT(ids_of("a.jsonl", "\xEF\xBB\xBF{\"text\": \"a\"}\n"), ElementsAre('a', 256));
}

TEST(TextSource, BrokenLinesAreNamed) {
  const ScratchFolder folder;
  const Tokenizer tokenizer = Tokenizer::byte();
  const auto refusal = [&](const std::string& text) {
    const auto path = folder.write("a.jsonl", text);
    return error_of([&] { static_cast<void>(open_token_source(path, &tokenizer)); });
  };
  EXPECT_THAT(refusal("{\"text\": \"a\"}\n{\"text\": \"b}\n"), AllOf(HasSubstr("a.jsonl:2"), HasSubstr("at byte")));
  EXPECT_THAT(refusal("{\"text\": 1}"), AllOf(HasSubstr("a.jsonl:1"), HasSubstr("no text at 'text'")));
  EXPECT_THAT(refusal("{\"tex\": \"a\"}"), HasSubstr("no key 'text'"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("{\"text\": \"a\", \"text\": \"b\"}"), HasSubstr("given twice"));
  EXPECT_THAT(refusal("{\"text\": \"\xff\"}"), HasSubstr("a.jsonl:1"));
  EXPECT_THAT(refusal("{\"text\": \"\\ud800\"}"), HasSubstr("a.jsonl:1"));
}

// ChatML over the built-in tokenizer's vocabulary.
Tokenizer chat_tokenizer() {
  const std::string chat_template =
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
      "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
  return Tokenizer::parse(make_byte_tokenizer_json(),
                          nlohmann::json{{"eos_token", "<|endoftext|>"}, {"chat_template", chat_template}}.dump());
}

TEST(Conversation, LossFallsOnTheAssistantOnly) {
  const ScratchFolder folder;
  const Tokenizer tokenizer = chat_tokenizer();
  const auto path = folder.write(
      "a.jsonl",
      R"({"messages": [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Bye"}]})"
      "\n"
      R"({"text": "plain"})");
  const auto source = open_token_source(path, &tokenizer);
  const auto ids = all_tokens(*source);
  const std::string text = tokenizer.decode(ids, false);
  const std::string chat =
      "<|im_start|>user\nHi?<|im_end|>\n<|im_start|>assistant\nYes.<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n";
  ASSERT_EQ(text, chat + "plain<|endoftext|>");
  ASSERT_TRUE(source->has_loss_mask());
  std::vector<std::uint8_t> mask(ids.size());
  source->read_loss_mask(0, mask);
  std::string trained;
  for (std::size_t i = 0; i < chat.size(); ++i) trained += mask[i] == 1 ? std::string(1, chat[i]) : "";
  EXPECT_THAT(trained, testing::StartsWith("Yes.<|im_end|>"));
  EXPECT_LE(trained.size(), std::string("Yes.<|im_end|>\n").size());
  EXPECT_THAT(std::span(mask).subspan(chat.size()), testing::Each(1));
  EXPECT_THAT(source->document_starts(), ElementsAre(0, static_cast<std::int64_t>(chat.size())));
}

TEST(Conversation, WhatWouldBeLostIsRefused) {
  const Tokenizer with = chat_tokenizer(), without = Tokenizer::byte();
  const auto refusal = [](const Tokenizer& tokenizer, const char* line) {
    const DocumentEncoder encoder(tokenizer, true);
    TokenizerWorkspace workspace = tokenizer.make_workspace();
    EncodedDocuments out;
    return error_of([&] { encoder.add_json_line(line, "f:7", workspace, out); });
  };
  const char* sound = R"({"messages": [{"role": "user", "content": "a", "name": null}]})";
  EXPECT_EQ(refusal(with, sound), "no error");
  EXPECT_THAT(refusal(without, sound), HasSubstr("f:7: cannot use a conversation"));
  EXPECT_THAT(refusal(with, R"({"text": "a", "messages": []})"), HasSubstr("no list of messages"));
  EXPECT_THAT(refusal(with, R"({"messages": []})"), HasSubstr("no list of messages"));
  EXPECT_THAT(refusal(with, R"({"messages": ["a"]})"), HasSubstr("f:7: message 1"));
  EXPECT_THAT(refusal(with, R"({"messages": [{"role": "user"}]})"), HasSubstr("no key 'content'"));
  const auto beside = [&](const std::string& more) {
    return refusal(with, (R"({"messages": [{"role": "user", "content": "a"}], )" + more + "}").c_str());
  };
  for (const char* key : {"text", "prompt", "conversations", "tools", "documents", "functions", "images", "system"}) {
    EXPECT_THAT(beside(fmt::format(R"("{}": [{{"a": "b"}}])", key)), HasSubstr(fmt::format("'{}'", key))) << key;
  }
  EXPECT_THAT(beside(R"("chat_template_kwargs": {"enable_thinking": false})"),
              HasSubstr("'enable_thinking' would be lost"));
  EXPECT_EQ(beside(R"("tools": [], "documents": null, "id": 7)"), "no error");
  EXPECT_THAT(beside(R"("tools": "[{\"a\": 1, \"a\": 2}]")"), HasSubstr("'tools' is not JSON"));
  const auto in_message = [&](const std::string& more) {
    return refusal(with, (R"({"messages": [{"role": "assistant", "content": "a", )" + more + "}]}").c_str());
  };
  EXPECT_EQ(in_message(R"("tool_calls": [], "weight": 0, "tool_call_id": "x")"), "no error");
  EXPECT_THAT(in_message(R"("tool_calls": [{"function": {"name": "f"}}])"), HasSubstr("'tool_calls' of message 1"));
  EXPECT_THAT(in_message(R"("name": "Bob")"), HasSubstr("'name' of message 1 (assistant) would be lost"));
  EXPECT_THAT(in_message(R"("weight": 0.5)"), HasSubstr("weight 0.5"));
  EXPECT_THAT(refusal(with, R"({"messages": [{"role": "user", "content": [{"type": "image", "url": "x"}]}]})"),
              HasSubstr("part of type 'image'"));
  EXPECT_THAT(refusal(with, R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
                                {"type": "text", "text": "b"}]}]})"),
              HasSubstr("2 parts"));
}

// The text of a line's document, with the trained part in brackets.
std::string marked(const std::string& line, const TextRules& rules = {}) {
  const Tokenizer tokenizer = chat_tokenizer();
  const DocumentEncoder encoder(tokenizer, true, rules);
  TokenizerWorkspace workspace = tokenizer.make_workspace();
  EncodedDocuments out;
  encoder.add_json_line(line, "f:1", workspace, out);
  std::string text;
  bool trained = false;
  for (std::size_t i = 0; i < out.ids.size(); ++i) {
    if ((out.loss_mask[i] == 1) != trained) text += trained ? "]" : "[";
    trained = out.loss_mask[i] == 1;
    text += tokenizer.decode(std::span(&out.ids[i], 1), false);
  }
  return text + (trained ? "]" : "");
}

TEST(DocumentLine, TakesTheCommonForms) {
  const std::string chat = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n[Yes<|im_end|>]\n";
  const std::string turns = R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}])";
  EXPECT_EQ(marked(R"({"messages": )" + turns + "}"), chat);
  EXPECT_EQ(marked(R"({"conversations": )" + turns + "}"), chat);
  EXPECT_EQ(marked(R"({"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yes"}]})"), chat);
  EXPECT_EQ(
      marked(
          R"({"system": "S", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yes"}]})"),
      "<|im_start|>system\nS<|im_end|>\n" + chat);
  EXPECT_EQ(marked(R"({"dialog": )" + turns + "}", {"dialog", "text", {}, ""}), chat);
  EXPECT_EQ(marked(R"({"prompt": "2+2=", "completion": "4"})"), "2+2=[4<|endoftext|>]");
  EXPECT_EQ(
      marked(
          R"({"prompt": [{"role": "user", "content": "Hi"}], "completion": [{"role": "assistant", "content": "Yes"}]})"),
      chat);
  EXPECT_EQ(marked(R"({"content": "plain"})", {"auto", "content", {}, ""}), "[plain<|endoftext|>]");
  EXPECT_EQ(marked(R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]},
                                    {"role": "assistant", "content": "Yes", "name": "Bob"}], "prompt": "Hi"})",
                   {"auto", "text", {"name", "prompt"}, ""}),
            chat);
}

TEST(DocumentLine, AWeightOfZeroTakesTheLossAway) {
  EXPECT_EQ(
      marked(R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "No", "weight": 0},
                                    {"role": "user", "content": "So"}, {"role": "assistant", "content": "Yes", "weight": 1}]})"),
      "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nNo<|im_end|>\n"
      "<|im_start|>user\nSo<|im_end|>\n<|im_start|>assistant\n[Yes<|im_end|>]\n");
}

TEST(DocumentLine, SaysOnceWhatIsNotUsed) {
  const Tokenizer tokenizer = chat_tokenizer();
  const DocumentEncoder encoder(tokenizer, true, {"auto", "text", {"url"}, ""});
  TokenizerWorkspace workspace = tokenizer.make_workspace();
  EncodedDocuments out;
  for (const char* place : {"f:1", "f:2"}) {
    encoder.add_json_line(R"({"text": "a", "url": "b", "meta": {"c": 1}})", place, workspace, out);
  }
  EXPECT_THAT(encoder.notes(), ElementsAre(HasSubstr("f:1: the key 'meta' is not used")));
}

// The built-in tokenizer without or with another post-processor, and what tokenizer_config.json says.
Tokenizer ending_tokenizer(const nlohmann::json& config, bool ends_itself) {
  auto json = nlohmann::json::parse(make_byte_tokenizer_json());
  if (ends_itself) {
    json["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single",
         {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
          {{"SpecialToken", {{"id", "<|endoftext|>"}, {"type_id", 0}}}}}},
        {"pair", nlohmann::json::array()},
        {"special_tokens",
         {{"<|endoftext|>", {{"id", "<|endoftext|>"}, {"ids", {256}}, {"tokens", {"<|endoftext|>"}}}}}}};
  }
  return Tokenizer::parse(json.dump(), config.dump());
}

TEST(EndOfText, EndsADocumentOnce) {
  const ScratchFolder folder;
  const auto path = folder.write("a.jsonl", std::string("{\"text\": \"a\"}\n{\"text\": \"b\"}\n"));
  const nlohmann::json named{{"eos_token", "<|endoftext|>"}}, none{{"eos_token", nullptr}};
  const auto tokens = [&](const Tokenizer& tokenizer, bool append) {
    return all_tokens(*open_token_source(path, {&tokenizer, {}, append}));
  };
  EXPECT_THAT(tokens(ending_tokenizer(named, false), true), ElementsAre('a', 256, 'b', 256));
  EXPECT_THAT(tokens(ending_tokenizer(named, true), true), ElementsAre('a', 256, 'b', 256));
  EXPECT_THAT(tokens(ending_tokenizer(none, true), false), ElementsAre('a', 256, 'b', 256));
  EXPECT_THAT(tokens(ending_tokenizer(named, false), false), ElementsAre('a', 'b'));
  EXPECT_THAT(tokens(ending_tokenizer(none, false), false), ElementsAre('a', 'b'));
  const Tokenizer endless = ending_tokenizer(none, false);
  EXPECT_THAT(error_of<UsageError>([&] { tokens(endless, true); }),
              AllOf(HasSubstr("a.jsonl:1: cannot end documents"), HasSubstr("append_eos to no")));
}

TEST(Utf8, FindsTheFirstIllFormedByte) {
  EXPECT_EQ(first_ill_formed(""), std::nullopt);
  EXPECT_EQ(first_ill_formed("plain ASCII text, longer than eight bytes"), std::nullopt);
  EXPECT_EQ(first_ill_formed("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xED\x9F\xBF\xF4\x8F\xBF\xBF"), std::nullopt);
  for (const std::string bad : {"\x80", "\xC0\x80", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                                "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xFF", "\xC3\x28"}) {
    EXPECT_EQ(first_ill_formed("0123456789" + bad), 10U);
    EXPECT_EQ(first_ill_formed("0123456789" + bad + "tail of the text"), 10U);
  }
}

TEST(MultipleChoice, ReadsQuestions) {
  const ScratchFolder folder;
  const auto path =
      folder.write("q.jsonl",
                   "{\"context\": \"The sky is\", \"choices\": [\" blue\", \" green\"], \"answer\": 0, \"id\": 7}\n\n"
                   "{\"context\": \"\", \"choices\": [\"a\", \"b\", \"c\"], \"answer\": 2}\n");
  const auto questions = read_multiple_choice(path);
  ASSERT_EQ(questions.size(), 2U);
  EXPECT_EQ(questions[0].context, "The sky is");
  EXPECT_THAT(questions[0].choices, ElementsAre(" blue", " green"));
  EXPECT_EQ(questions[1].answer, 2U);
}

TEST(MultipleChoice, RefusesWithThePlace) {
  const auto refusal = [](const char* line) {
    return error_of([&] { static_cast<void>(parse_multiple_choice(line, "q:3")); });
  };
  for (const char* bad :
       {"{", "[]", "{}", R"({"context": 1, "choices": ["a", "b"], "answer": 0})",
        R"({"context": "c", "choices": ["a"], "answer": 0})", R"({"context": "c", "choices": ["a", ""], "answer": 0})",
        R"({"context": "c", "choices": ["a", 2], "answer": 0})",
        R"({"context": "c", "choices": ["a", "b"], "answer": 2})",
        R"({"context": "c", "choices": ["a", "b"], "answer": -1})",
        R"({"context": "c", "choices": ["a", "b"], "answer": "0"})",
        R"({"context": "c", "choices": "ab", "answer": 0})",
        R"({"context": "c", "choices": ["a", "b"], "answer": 0.5})", R"({"context": "c", "choices": ["a", "b"]})"}) {
    EXPECT_THAT(refusal(bad), HasSubstr("q:3: ")) << bad;
  }
  const ScratchFolder folder;
  const auto empty = folder.write("e.jsonl", "\n");
  EXPECT_THAT(error_of([&] { static_cast<void>(read_multiple_choice(empty)); }), HasSubstr("no questions"));
}

}  // namespace
}  // namespace lamina
