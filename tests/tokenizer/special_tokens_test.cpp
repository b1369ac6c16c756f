// Special tokens that files beside tokenizer.json name: ids equal to transformers' (make_special_token_goldens.py), and
// where the end of a text comes from.
#include "support/temporary_folder.hpp"

#include <filesystem>
#include <fstream>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lamina {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;

const std::filesystem::path goldens = std::filesystem::path(LAMINA_SOURCE_DIR) / "tests/tokenizer/goldens";

class SpecialTokens : public testing::Test {
 protected:
  void write(const std::string& name, const Json& content) const { write_text(name, content.dump()); }
  void write_text(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  void write_base(const std::string& base, const Json& patch) const {
    Json file = Json::parse(read_file(goldens / ("base_" + base + ".json")));
    for (const auto& [key, value] : patch.items()) file[key] = value;
    write("tokenizer.json", file);
  }
  [[nodiscard]] Tokenizer load() const { return Tokenizer::load(folder_.path()); }
  [[nodiscard]] std::string refusal() const {
    try {
      (void)load();
    } catch (const DataError& error) {
      return error.what();
    }
    return "accepted";
  }

  test::TemporaryFolder folder_;
};

TEST_F(SpecialTokens, HaveTheIdsOfTransformers) {
  const Json golden = Json::parse(read_file(goldens / "special_tokens.json"));
  ASSERT_GT(golden.at("cases").size(), 90U);
  for (const Json& one : golden.at("cases")) {
    const test::TemporaryFolder folder;
    Json file = Json::parse(read_file(goldens / ("base_" + one.at("base").get<std::string>() + ".json")));
    file.update(one.at("patch"));
    std::ofstream(folder / "tokenizer.json") << file;
    for (const auto& [name, content] : one.at("files").items()) std::ofstream(folder / name) << content;
    const Tokenizer tokenizer = Tokenizer::load(folder.path());
    for (std::size_t i = 0; i < golden.at("texts").size(); ++i) {
      const auto text = golden.at("texts")[i].get<std::string>();
      const Ids ids = tokenizer.encode(text, true);
      EXPECT_EQ(Json(ids), one.at("ids")[i]) << one.at("name") << ": " << text;
      EXPECT_EQ(tokenizer.decode(ids, true), one.at("skipped")[i].get<std::string>()) << one.at("name") << ": " << text;
    }
    EXPECT_EQ(tokenizer.eos() ? Json(*tokenizer.eos()) : Json(), one.at("eos")) << one.at("name");
    EXPECT_EQ(tokenizer.vocab_size(), one.at("tokens").get<std::int64_t>()) << one.at("name");
  }
}

TEST_F(SpecialTokens, RefuseAnIdThatTransformersWouldNotGive) {
  write_base("qwen2", {{"added_tokens", Json::array()}});
  const Json token{{"content", "<x>"}, {"lstrip", false}, {"rstrip", false}, {"single_word", false}, {"special", true}};
  write("tokenizer_config.json", {{"added_tokens_decoder", {{"9000", token}}}});
  EXPECT_NE(refusal().find("added_tokens_decoder.9000: token '<x>' has id 9000 there but 856"), std::string::npos)
      << refusal();
  write("tokenizer_config.json", {{"added_tokens_decoder", {{"many", token}}}});
  EXPECT_NE(refusal().find("its key is no token id"), std::string::npos) << refusal();
}

// transformers ignores both unless a caller asks for padded or cut batches.
TEST_F(SpecialTokens, TruncationAndPaddingChangeNoId) {
  write_base("gpt2", {});
  const Ids plain = load().encode("one text of several words", true);
  write_base("gpt2",
             {{"truncation", {{"direction", "Right"}, {"max_length", 2}, {"strategy", "LongestFirst"}, {"stride", 0}}},
              {"padding",
               {{"strategy", {{"Fixed", 64}}},
                {"direction", "Right"},
                {"pad_to_multiple_of", nullptr},
                {"pad_id", 0},
                {"pad_type_id", 0},
                {"pad_token", "<|endoftext|>"}}}});
  EXPECT_EQ(load().encode("one text of several words", true), plain);
}

class EndOfText : public SpecialTokens {
 protected:
  EndOfText() { write_base("qwen2", {}); }
  [[nodiscard]] std::optional<std::string> document_end() const {
    const Tokenizer tokenizer = load();
    const auto id = tokenizer.document_eos();
    return id ? tokenizer.token_of(*id) : std::nullopt;
  }
};

TEST_F(EndOfText, ComesFromTheFirstFileThatNamesIt) {
  EXPECT_EQ(document_end(), std::nullopt);
  const std::int32_t start = *load().id_of("<|im_start|>");
  write("config.json", {{"model_type", "llama"}, {"eos_token_id", {900000, start}}});
  EXPECT_EQ(document_end(), "<|im_start|>");
  EXPECT_FALSE(load().eos().has_value());  // a chat template sees none
  write("config.json", {{"model_type", "qwen2"}, {"eos_token_id", start}});
  EXPECT_EQ(document_end(), "<|endoftext|>");  // Qwen2Tokenizer's
  write("tokenizer_config.json", {{"tokenizer_class", "PreTrainedTokenizerFast"}});
  EXPECT_EQ(document_end(), "<|im_start|>");
  write("tokenizer_config.json", {{"tokenizer_class", "Qwen2TokenizerFast"}});
  EXPECT_EQ(document_end(), "<|endoftext|>");
  write("tokenizer_config.json", {{"tokenizer_class", "Qwen2Tokenizer"}, {"eos_token", nullptr}});
  EXPECT_EQ(document_end(), "<|im_start|>");
  write("special_tokens_map.json", {{"eos_token", {{"content", "<|im_end|>"}, {"lstrip", false}}}});
  EXPECT_EQ(document_end(), "<|im_end|>");
  write("tokenizer_config.json", {{"eos_token", "<|endoftext|>"}, {"added_tokens_decoder", Json::object()}});
  EXPECT_EQ(document_end(), "<|endoftext|>");
}

TEST_F(EndOfText, OfTwoThatContradictIsRefused) {
  write("tokenizer_config.json", {{"eos_token", "<|endoftext|>"}});
  write("special_tokens_map.json", {{"eos_token", "<|im_end|>"}});
  EXPECT_NE(refusal().find("its eos_token is '<|endoftext|>', but '<|im_end|>' of"), std::string::npos) << refusal();
}

// What is streamed behind a prompt is what decoding everything at once gives.
TEST(Stream, KeepsTheSpaceBehindAPrompt) {
  for (const char* base : {"llama2", "gpt2"}) {
    const Tokenizer tokenizer = Tokenizer::parse(read_file(goldens / ("base_" + std::string(base) + ".json")));
    const Ids prompt = tokenizer.encode("Hello", true);
    const Ids all = tokenizer.encode("Hello the world, \xE2\x98\x83\xE2\x98\x83 end", true);
    ASSERT_TRUE(std::equal(prompt.begin(), prompt.end(), all.begin())) << base;
    StreamDecoder stream(tokenizer, true);
    stream.continue_after(prompt);
    std::string out = "Hello";
    for (std::size_t i = prompt.size(); i < all.size(); ++i) out += stream.push(all[i]);
    EXPECT_EQ(out + stream.finish(), "Hello the world, \xE2\x98\x83\xE2\x98\x83 end") << base;
  }
}

TEST(Stream, HoldsBytesUntilTheirRunEnds) {
  const Tokenizer tokenizer = Tokenizer::parse(read_file(goldens / "base_llama2.json"));
  const auto byte = [&](const char* name) { return *tokenizer.id_of(name); };
  // A whole character, then half of one: as one run it is no UTF-8.
  const Ids ids{byte("<0xE6>"), byte("<0x97>"), byte("<0xA5>"), byte("<0xE6>"), *tokenizer.id_of("a"), byte("<0x41>")};
  StreamDecoder stream(tokenizer, true);
  std::string out;
  for (const std::int32_t id : ids) out += stream.push(id);
  EXPECT_EQ(out + stream.finish(), tokenizer.decode(ids, true));
}

}  // namespace
}  // namespace lamina
