// tokenizer.json is untrusted: 100,000 mutated files are either refused with DataError or give a tokenizer that works.
#include <random>

#include <lamina/base/error.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lamina {
namespace {

using Json = nlohmann::json;

const std::string tiny_byte_level = R"({"version":"1.0","truncation":null,"padding":null,
"added_tokens":[{"id":6,"content":"<e>","single_word":false,"lstrip":false,"rstrip":true,"normalized":false,"special":true}],
"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Replace","pattern":{"String":"x"},"content":"b"}]},
"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{L}+|\\s"},"behavior":"Isolated","invert":false},
{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<e>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],
"pair":[],"special_tokens":{"<e>":{"id":"<e>","ids":[6],"tokens":["<e>"]}}},
"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},
"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":"","end_of_word_suffix":"","fuse_unk":false,
"byte_fallback":false,"ignore_merges":true,"vocab":{"a":0,"b":1,"c":2,"ab":3,"abc":4,"Ġ":5},"merges":[["a","b"],"ab c"]}})";

const std::string tiny_sentencepiece =
    R"({"version":"1.0","added_tokens":[{"id":0,"content":"<u>","single_word":true,"lstrip":true,
"rstrip":false,"normalized":true,"special":true}],"normalizer":{"type":"Prepend","prepend":"▁"},
"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true},
"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},
{"type":"Strip","content":" ","start":1,"stop":0}]},
"model":{"type":"BPE","unk_token":"<u>","fuse_unk":true,"byte_fallback":true,
"vocab":{"<u>":0,"▁":1,"a":2,"b":3,"▁a":4,"<0xC3>":5,"<0xA9>":6},"merges":["▁ a"]}})";

const std::string odd_values = R"json([null,true,false,0,-1,1,6,65535,2147483647,4294967296,1e300,"","a","b","ab","<e>",
"▁"," ","é","\\p{L}","(a*)*","a{1,60000}","[^\\s]","(?=)","Sequence","ByteLevel","Metaspace","NFKD","Removed","Contiguous",
"MergedWithNext","Digits","Strip","Fuse","BPE",[],{},["a","b"],{"type":"NFD"},{"type":"Fuse"},{"type":"Whitespace"},
{"type":"Digits","individual_digits":false}])json";

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  std::string mutate(const std::string& text, const Json& document) {
    return below(2) == 0 ? mutate_bytes(text) : mutate_values(document);
  }

 private:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_()) % limit; }

  std::string mutate_bytes(std::string text) {
    for (std::size_t i = 0, count = 1 + below(3); i < count; ++i) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = static_cast<char>(static_cast<unsigned char>(below(256)));
          break;
        case 1:
          text.erase(at, 1 + below(12));
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), 1 + below(20)));
          break;
        default:
          text.insert(at, 1, "\"{}[]:,\\0129-eE"[below(15)]);
          break;
      }
      if (text.empty()) text = "{";
    }
    return text;
  }

  // Collects every value's place, then overwrites some by values of another kind or from elsewhere in the document.
  std::string mutate_values(Json document) {
    for (std::size_t i = 0, count = 1 + below(3); i < count; ++i) {
      const Json flat = document.flatten();
      const std::string path = std::next(flat.begin(), static_cast<std::ptrdiff_t>(below(flat.size()))).key();
      Json::json_pointer place(path);
      for (std::size_t up = below(3); up > 0 && !place.empty(); --up) place.pop_back();
      document[place] = value(flat);
    }
    return document.dump();
  }

  Json value(const Json& flat) {
    static const Json odd = Json::parse(odd_values);
    if (below(3) > 0) return odd[below(odd.size())];
    return std::next(flat.begin(), static_cast<std::ptrdiff_t>(below(flat.size()))).value();
  }

  std::mt19937 random_;
};

// Whether the file was accepted. Anything but DataError fails the test.
bool try_one(const std::string& text) {
  try {
    const Tokenizer tokenizer = Tokenizer::parse(text);
    const auto ids = tokenizer.encode("abc <e>\xC3\xA9 x\xFF", true);
    for (const auto id : ids) EXPECT_TRUE(id >= 0 && id < tokenizer.vocab_size()) << id;
    (void)tokenizer.decode(ids, false);
    return true;
  } catch (const DataError& error) {
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
    return false;
  }
}

void fuzz(const std::string& text, std::uint32_t seed) {
  ASSERT_TRUE(try_one(text));
  const Json document = Json::parse(text);
  Mutator mutator(seed);
  int accepted = 0;
  for (int i = 0; i < 50000; ++i) {
    const std::string mutated = mutator.mutate(text, document);
    ASSERT_NO_THROW(accepted += try_one(mutated) ? 1 : 0) << mutated;
  }
  // The mutations reach past the JSON parser: a fair part is still a tokenizer, most are not.
  EXPECT_GT(accepted, 500);
  EXPECT_LT(accepted, 25000);
}

TEST(TokenizerFuzz, byte_level_files_never_crash) { fuzz(tiny_byte_level, 1); }
TEST(TokenizerFuzz, sentencepiece_files_never_crash) { fuzz(tiny_sentencepiece, 2); }

}  // namespace
}  // namespace lamina
