#include <filesystem>
#include <fstream>
#include <thread>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/tokenizer/byte_tokenizer.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace lamina {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;

const std::filesystem::path goldens = std::filesystem::path(LAMINA_SOURCE_DIR) / "tests/tokenizer/goldens";

Json base(const std::string& name) { return Json::parse(read_file(goldens / ("base_" + name + ".json"))); }

std::string refusal(const std::string& tokenizer, const std::string& config = {}) {
  try {
    (void)Tokenizer::parse(tokenizer, config);
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("lamina_tokenizer_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& content) const { std::ofstream(path_ / name) << content; }

 private:
  std::filesystem::path path_;
};

std::string all_bytes_twice() {
  std::string out;
  for (int i = 0; i < 512; ++i) out.push_back(static_cast<char>(static_cast<unsigned char>(i * 7)));
  return out + "<|endoftext|>" + out;
}

TEST(ByteTokenizer, gives_each_byte_its_value) {
  const Tokenizer tokenizer = Tokenizer::byte();
  EXPECT_EQ(tokenizer.vocab_size(), byte_tokenizer_vocab_size);
  EXPECT_EQ(tokenizer.encode("Az \xC3\xA9\n", true), (Ids{65, 122, 32, 0xC3, 0xA9, 10}));
  EXPECT_EQ(tokenizer.encode("a<|endoftext|>b", true), (Ids{97, 256, 98}));
  EXPECT_EQ(tokenizer.eos(), 256);
  EXPECT_EQ(tokenizer.bos(), 256);
  EXPECT_TRUE(tokenizer.is_special(256));
  EXPECT_FALSE(tokenizer.is_special(32));
  EXPECT_FALSE(tokenizer.token_of(257).has_value());
  EXPECT_FALSE(tokenizer.token_of(-1).has_value());
  EXPECT_EQ(tokenizer.id_of("<|endoftext|>"), 256);
}

TEST(ByteTokenizer, keeps_any_byte_string) {
  const Tokenizer tokenizer = Tokenizer::byte();
  ASSERT_TRUE(tokenizer.pure_bytes());
  const std::string bytes = all_bytes_twice();
  const Ids ids = tokenizer.encode(bytes, false);
  EXPECT_EQ(ids.size(), 1025U);
  EXPECT_EQ(tokenizer.decode_bytes(ids, false), bytes);
  EXPECT_EQ(tokenizer.decode_bytes(ids, true).size(), 1024U);
}

TEST(ByteTokenizer, loads_from_its_own_files) {
  const Folder folder;
  folder.write("tokenizer.json", make_byte_tokenizer_json());
  folder.write("tokenizer_config.json", make_byte_tokenizer_config_json());
  const Tokenizer tokenizer = Tokenizer::named(folder.path());
  EXPECT_EQ(tokenizer.decode_bytes(tokenizer.encode(all_bytes_twice(), true), false), all_bytes_twice());
  EXPECT_EQ(tokenizer.eos(), 256);
  EXPECT_FALSE(tokenizer.chat_template().has_value());
  folder.write("chat_template.jinja", "{{ messages }}");
  EXPECT_EQ(Tokenizer::load(folder.path() / "tokenizer.json").chat_template(), "{{ messages }}");
}

TEST(ByteTokenizer, decodes_ill_formed_bytes_with_replacement) {
  const Tokenizer tokenizer = Tokenizer::byte();
  EXPECT_EQ(tokenizer.decode(Ids{0x61, 0xF0, 0x9F, 0x98, 0x62}, false),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(tokenizer.decode(Ids{0xE0, 0x80, 0xED, 0xA0}, false), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Tokenizer, replaces_ill_formed_input) {
  for (const char* name : {"gpt2", "llama2"}) {
    const Tokenizer tokenizer = Tokenizer::parse(base(name).dump());
    EXPECT_FALSE(tokenizer.pure_bytes());
    EXPECT_EQ(tokenizer.encode("a\xFFz\xC3", true), tokenizer.encode("a\xEF\xBF\xBDz\xEF\xBF\xBD", true)) << name;
  }
}

TEST(Tokenizer, streams_only_complete_characters) {
  const Tokenizer tokenizer = Tokenizer::byte();
  StreamDecoder stream(tokenizer, true);
  EXPECT_EQ(stream.push('a'), "a");
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push(0x82), "");
  EXPECT_EQ(stream.push(0xAC), "\xE2\x82\xAC");
  EXPECT_EQ(stream.push(256), "");
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push('b'),
            "\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Tokenizer, streams_byte_fallback_tokens_as_characters) {
  const Tokenizer tokenizer = Tokenizer::parse(base("llama2").dump());
  const std::string text = "snow \xE2\x98\x83 and \xF0\x9F\xA6\x8A.";
  StreamDecoder stream(tokenizer, true);
  std::string out;
  for (const auto id : tokenizer.encode(text, true)) {
    const std::string part = stream.push(id);
    EXPECT_EQ(part.find("\xEF\xBF\xBD"), std::string::npos);
    out += part;
  }
  EXPECT_EQ(out + stream.finish(), text);
}

TEST(Tokenizer, encodes_from_many_threads) {
  const Tokenizer tokenizer = Tokenizer::parse(base("qwen2").dump());
  const auto texts = Json::parse(read_file(goldens / "texts.json")).get<std::vector<std::string>>();
  std::vector<Ids> expected;
  for (const auto& text : texts) expected.push_back(tokenizer.encode(text, true));
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::size_t k = (i + t * 17) % texts.size();
        if (tokenizer.encode(texts[k], true) != expected[k]) ++wrong[t];
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Tokenizer, reads_special_tokens_and_template_of_the_config) {
  const std::string tokenizer = base("qwen2").dump();
  const Tokenizer plain = Tokenizer::parse(tokenizer);
  EXPECT_FALSE(plain.eos().has_value());
  const Tokenizer named =
      Tokenizer::parse(tokenizer, R"({"eos_token": {"content": "<|im_end|>", "lstrip": false}, "bos_token": null,
                     "chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]})");
  EXPECT_EQ(named.eos(), named.id_of("<|im_end|>"));
  EXPECT_FALSE(named.bos().has_value());
  EXPECT_EQ(named.chat_template(), "D");
  EXPECT_NE(refusal(tokenizer, R"({"eos_token": "<nowhere>"})").find("eos_token '<nowhere>'"), std::string::npos);
  EXPECT_NE(refusal(tokenizer, R"({"eos_token": 3})").find("eos_token: expected a string"), std::string::npos);
  EXPECT_NE(refusal(tokenizer, "{").find("tokenizer_config.json"), std::string::npos);
}

struct Refused {
  const char* base;
  const char* patch;     // JSON merge patch
  const char* expected;  // part of the message
};

class Refusal : public testing::TestWithParam<Refused> {};

TEST_P(Refusal, names_the_place) {
  Json file = base(GetParam().base);
  file.merge_patch(Json::parse(GetParam().patch));
  const std::string message = refusal(file.dump());
  EXPECT_NE(message.find(GetParam().expected), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    sections, Refusal,
    testing::Values(
        Refused{"gpt2", R"({"version": "2.0"})", "version: version '2.0' is not known"},
        Refused{"gpt2", R"({"extra": 1})", "key 'extra' is not known"},
        Refused{"gpt2", R"({"model": null})", "key 'model' is missing"},
        Refused{"gpt2", R"({"model": {"type": "Unigram"}})", "model.type: model 'Unigram' is not implemented"},
        Refused{"gpt2", R"({"model": {"type": "WordPiece"}})", "model 'WordPiece'"},
        Refused{"gpt2", R"({"model": {"dropout": 0.1}})", "model.dropout: dropout is not implemented"},
        Refused{"gpt2", R"({"model": {"end_of_word_suffix": "</w>"}})", "model.end_of_word_suffix"},
        Refused{"gpt2", R"({"model": {"continuing_subword_prefix": "##"}})", "model.continuing_subword_prefix"},
        Refused{"gpt2", R"({"model": {"unk_token": "<none>"}})", "model.unk_token: token '<none>'"},
        Refused{"gpt2", R"({"model": {"vocab": {"twin": 70}}})", "share id 70"},
        Refused{"gpt2", R"({"model": {"vocab": {"far": 900000000}}})", "token 'far' has id '900000000'"},
        Refused{"gpt2", R"({"model": {"vocab": {"low": -1}}})", "token 'low' has id '-1'"},
        Refused{"gpt2", R"({"model": {"vocab": {"half": 0.5}}})", "token 'half' has id '0.5'"},
        Refused{"gpt2", R"({"model": {"vocab": {"huge": 18446744073709551615}}})", "token 'huge'"},
        Refused{"gpt2", R"({"model": {"vocab": []}})", "model.vocab: expected an object"},
        Refused{"gpt2", R"({"model": {"merges": {}}})", "model.merges: expected an array"},
        Refused{"gpt2", R"({"model": {"merges": ["abc"]}})", "model.merges[0]: 'abc' is not two tokens"},
        Refused{"gpt2", R"({"model": {"merges": ["a b c"]}})", "model.merges[0]"},
        Refused{"gpt2", R"({"model": {"merges": [["a", "b", "c"]]}})", "model.merges[0]: expected a pair"},
        Refused{"gpt2", R"({"model": {"merges": [["a", "b"], ["a", "~~"]]}})", "is not in the vocabulary"},
        Refused{"gpt2", R"({"model": {"merges": [["a", 3]]}})", "model.merges[0][1]: expected a string"},
        Refused{"gpt2", R"({"normalizer": {"type": "Precompiled"}})", "normalizer 'Precompiled' is not implemented"},
        Refused{"gpt2", R"({"normalizer": {"type": "NFC", "more": 1}})", "key 'more'"},
        Refused{"gpt2", R"({"pre_tokenizer": {"type": "BertPreTokenizer"}})", "pre_tokenizer 'BertPreTokenizer'"},
        Refused{"llama3", R"({"pre_tokenizer": {"pretokenizers": [{"type": "ByteLevel", "add_prefix_space": false},
                {"type": "Digits", "individual_digits": true}]}})",
                "pre_tokenizer after ByteLevel"},
        Refused{"gpt2", R"({"post_processor": {"type": "BertProcessing"}})", "post_processor 'BertProcessing'"},
        Refused{"gpt2", R"({"decoder": {"type": "CTC"}})", "decoder 'CTC'"},
        Refused{"gpt2", R"({"added_tokens": [{"id": 5, "content": "<x>", "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true}]})",
                "has id 5 here but 856"},
        Refused{"gpt2", R"({"added_tokens": [{"id": 856, "content": "", "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true}]})",
                "empty added token"},
        Refused{"gpt2", R"({"added_tokens": [{"id": 856, "content": "<x>"}]})", "added_tokens[0]: key 'single_word'"},
        Refused{"llama2", R"({"post_processor": {"special_tokens": {"<s>": {"ids": [9999]}}}})",
                "id 9999 names no token"},
        Refused{"llama2", R"({"post_processor": {"special_tokens": {"<s>": null}}})",
                "'<s>' is not among special_tokens"}));

std::string pattern_refusal(const std::string& pattern) {
  Json file = base("gpt2");
  file["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  file["model"]["vocab"] = {{"a", 0}};
  file["model"]["merges"] = Json::array();
  file["added_tokens"] = Json::array();
  return refusal(file.dump());
}

TEST(Pattern, refuses_what_the_engines_read_differently) {
  EXPECT_EQ(pattern_refusal(R"([^\r\n\p{L}\p{N}]?+\p{L}++|\s+(?!\S)|(?i:'s)|\x{41}\u0042)"), "accepted");
  for (const char* pattern : {"\\h", "\\w", "\\bx",        "[a&&b]", "[[a]]",   "[]a]",    "a{1,3}+",    "a{,3}",
                              "x{",  "^a",  "a$",          "(?m:a)", "(?<n>a)", "(*VERB)", "\\p{Greek}", "\\p{Mn}",
                              "\\1", "\\K", "\\x{110000}", "[a",     "\\",      "(a",      "[\\D]",      "\\pL"}) {
    EXPECT_NE(pattern_refusal(pattern).find("pattern"), std::string::npos)
        << pattern << ": " << pattern_refusal(pattern);
  }
}

TEST(StrictJson, refuses_double_keys_bad_text_and_depth) {
  const std::string good = base("gpt2").dump();
  EXPECT_NE(refusal(good.substr(0, good.size() - 1) + R"(,"version":"1.0"})").find("key 'version' is given twice"),
            std::string::npos);
  EXPECT_NE(refusal(good.substr(0, good.size() / 2)).find("not valid JSON at byte"), std::string::npos);
  EXPECT_NE(refusal("{\"version\": \"\xFF\"}").find("UTF-8"), std::string::npos);
  EXPECT_NE(refusal(R"({"version": "\ud800"})").find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal(std::string(100000, '[')).find("nested deeper than 64"), std::string::npos);
  EXPECT_NE(refusal("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("[]").find("top: expected an object"), std::string::npos);
  EXPECT_THROW((void)Tokenizer::load("/nonexistent/folder"), DataError);
}

TEST(Normalizer, stops_text_that_explodes) {
  Json file = base("llama2");
  Json steps = Json::array();
  for (int i = 0; i < 40; ++i)
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}});
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  const Tokenizer tokenizer = Tokenizer::parse(file.dump());
  EXPECT_THROW((void)tokenizer.encode("aaaa", false), DataError);
  EXPECT_NO_THROW((void)tokenizer.encode("bcd", false));
}

TEST(TextBytes, AddUpToTheTextWhereverItIsCut) {
  const std::string text = "the law \xE2\x82\xAC of\n\xF0\x9F\x98\x80 words, and  more";
  for (const char* name : {"llama2", "llama3", "gpt2"}) {
    const Tokenizer tokenizer = Tokenizer::parse(base(name).dump(), {});
    std::int64_t sum = 0;
    for (const std::int32_t id : tokenizer.encode(text, false)) sum += tokenizer.text_bytes(id);
    // Llama 2's puts a space in front.
    EXPECT_EQ(sum, std::ssize(text) + (name == std::string("llama2") ? 1 : 0)) << name;
  }
  EXPECT_EQ(Tokenizer::byte().text_bytes(200), 1) << "half a character is one byte, not a replacement of three";
  EXPECT_EQ(Tokenizer::byte().text_bytes(256), 0) << "the end of a text is no text";
  EXPECT_EQ(Tokenizer::byte().text_bytes(5000), 0);
}

}  // namespace
}  // namespace lamina
