// What users' text files are like: compressed, lists, of other encodings, of other line ends.
#include "data/scratch_folder.hpp"

#include <lamina/data/document_encoder.hpp>
#include <lamina/data/multiple_choice.hpp>
#include <lamina/data/token_mixture.hpp>
#include <lamina/data/token_source.hpp>
#include <lamina/data/tokenize_files.hpp>
#include <lamina/tokenizer/byte_tokenizer.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

#include <gmock/gmock.h>
#include <zlib.h>

namespace lamina {
namespace {

using namespace std::string_literals;
using test::error_of;
using test::ScratchFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string gzip(const std::string& text) {
  z_stream state{};
  EXPECT_EQ(::deflateInit2(&state, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&state, text.size()) + 64, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&state, Z_FINISH), Z_STREAM_END);
  out.resize(state.total_out);
  ::deflateEnd(&state);
  return out;
}

class TextFiles : public testing::Test {
 protected:
  std::unique_ptr<TokenSource> open(const std::string& name, const std::string& bytes) const {
    return open_token_source(folder_.write(name, bytes), &bytes_);
  }
  std::vector<std::int32_t> ids(const std::string& name, const std::string& bytes) const {
    const auto source = open(name, bytes);
    std::vector<std::int32_t> out(static_cast<std::size_t>(source->size()));
    source->read(0, out);
    return out;
  }
  std::string refusal(const std::string& name, const std::string& bytes) const {
    return error_of<Error>([&] { static_cast<void>(open(name, bytes)); });
  }
  // A file of JSON lines through lamina-tokenize's way, in blocks of `block` bytes.
  std::vector<std::int32_t> tokenized(const std::string& name, const std::string& bytes, std::size_t block) const {
    TokenizeRequest request;
    request.inputs = {folder_.write(name, bytes)};
    request.output = folder_ / "out.h5";
    request.block_bytes = block;
    const TokenizeProgress done = tokenize_files(request, bytes_);
    EXPECT_EQ(done.bytes, bytes.size());
    EXPECT_EQ(done.total_bytes, bytes.size());
    const auto source = open_token_source(request.output, nullptr);
    std::vector<std::int32_t> out(static_cast<std::size_t>(source->size()));
    source->read(0, out);
    return out;
  }

  ScratchFolder folder_;
  Tokenizer bytes_ = Tokenizer::byte();
};

const std::string lines = "{\"text\": \"a\"}\n\n{\"text\": \"b\"}\r\n{\"text\": \"\"}";
const std::string list = " [\n {\"text\":\n \"a\"} , {\"text\": \"b\"},{\"text\": \"\"}\r\n]\n\n";
const std::vector<std::int32_t> line_ids{'a', 256, 'b', 256, 256};

TEST_F(TextFiles, GzipIsReadAsWhatItHolds) {
  EXPECT_EQ(ids("a.jsonl.gz", gzip(lines)), line_ids);
  EXPECT_EQ(ids("a.jsonl", gzip(lines)), line_ids);  // content decides
  EXPECT_EQ(ids("a.jsonl.gz", lines), line_ids);
  EXPECT_EQ(ids("a.json.gz", gzip(list)), line_ids);
  EXPECT_THAT(ids("a.txt.gz", gzip("xy\n")), ElementsAre('x', 'y', '\n'));
  EXPECT_THAT(ids("a.txt.gz", gzip("x") + gzip("y") + "\0\0"s), ElementsAre('x', 'y'));
  EXPECT_THAT(ids("a.txt.gz", gzip("")), ElementsAre());
  EXPECT_TRUE(needs_tokenizer("a.jsonl.gz"));
  EXPECT_FALSE(needs_tokenizer("a.bin.gz"));
}

TEST_F(TextFiles, DamagedGzipIsRefused) {
  const std::string whole = gzip(std::string(100000, 'x') + lines);
  EXPECT_THAT(refusal("a.txt.gz", whole.substr(0, whole.size() - 1)), HasSubstr("end in the middle"));
  EXPECT_THAT(refusal("a.txt.gz", whole.substr(0, 40)), HasSubstr("end in the middle"));
  EXPECT_THAT(refusal("a.txt.gz", whole + "garbage"), HasSubstr("damaged gzip data"));
  std::string flipped = whole;
  flipped[whole.size() - 6] ^= 1;  // the checksum
  EXPECT_THAT(refusal("a.txt.gz", flipped), AllOf(HasSubstr("a.txt.gz: damaged gzip data"), HasSubstr("check")));
  EXPECT_THAT(refusal("a.bin.gz", whole), HasSubstr("gunzip"));
}

TEST_F(TextFiles, ListsAreReadByElement) {
  EXPECT_EQ(ids("a.json", list), line_ids);
  EXPECT_EQ(ids("a.json", lines), line_ids);
  EXPECT_EQ(ids("a.jsonl", list), line_ids);
  EXPECT_THAT(ids("a.json", "[]"), ElementsAre());
  EXPECT_THAT(ids("a.json", R"([{"text": "[\"],{\\"}, {"text": "é"}])"),
              ElementsAre('[', '"', ']', ',', '{', '\\', 256, 0xC3, 0xA9, 256));
  const auto second = [&](const std::string& bytes) { return refusal("a.json", bytes); };
  EXPECT_THAT(second(R"([{"text": "a"}, {"txt": "b"}])"), HasSubstr("a.json: element 2"));
  EXPECT_THAT(second(R"([{"text": "a"},, {"text": "b"}])"), HasSubstr("element 2: nothing stands before"));
  EXPECT_THAT(second(R"([{"text": "a"},])"), HasSubstr("element 2: nothing stands before"));
  EXPECT_THAT(second(R"([{"text": "a"} {"text": "b"}])"), HasSubstr("element 1: not JSON"));
  EXPECT_THAT(second(R"([{"text": "a"}, {"text": "b"})"), HasSubstr("in the middle of the list"));
  EXPECT_THAT(second(R"([{"text": "a"}] x)"), HasSubstr("behind the end"));
  EXPECT_THAT(second("[{\"text\": \"a\nb\"}]"), HasSubstr("raw line break"));
  EXPECT_THAT(second("[{\"text\": \"a\"]}]"), HasSubstr("the list ends with }"));
}

TEST_F(TextFiles, QuestionsAreReadInTheSameWays) {
  const std::string one = R"({"context": "a", "choices": ["b", "c"], "answer": 1})";
  EXPECT_EQ(read_multiple_choice(folder_.write("q.jsonl.gz", gzip(one + "\n" + one))).size(), 2U);
  EXPECT_EQ(read_multiple_choice(folder_.write("q.json", "[" + one + "," + one + "]")).size(), 2U);
}

TEST_F(TextFiles, BlocksChangeNothing) {
  std::string many = "[";
  std::string same;
  for (int i = 0; i < 300; ++i) {
    const std::string object = "{\"text\": \"line " + std::to_string(i * i) + " \\\" ] [\"}";
    many += (i > 0 ? ",\n" : "") + object;
    same += object + "\n";
  }
  many += "]";
  const auto expected = ids("m.jsonl", same);
  for (const std::size_t block : {1U, 7U, 100U, 5000U, 1U << 20}) {
    EXPECT_EQ(tokenized("m.json", many, block), expected) << block;
    EXPECT_EQ(tokenized("m.json.gz", gzip(many), block), expected) << block;
    EXPECT_EQ(tokenized("m.jsonl.gz", gzip(same), block), expected) << block;
  }
}

TEST_F(TextFiles, OtherKindsAreNamedWithAWayOut) {
  const std::string zst = "\x28\xb5\x2f\xfd" + std::string(100, 'x');
  EXPECT_THAT(refusal("a.jsonl.zst", zst), AllOf(HasSubstr("compressed with zstd"), HasSubstr("zstd -d")));
  EXPECT_THAT(refusal("a.jsonl", zst), HasSubstr("compressed with zstd"));
  EXPECT_THAT(refusal("a.txt", "\xfd"s + "7zXZ\0"s + "xx"), HasSubstr("xz -dk"));
  EXPECT_THAT(refusal("a.parquet", "PAR1xxxx"), AllOf(HasSubstr("Parquet"), HasSubstr("pandas.read_parquet")));
  EXPECT_THAT(refusal("a.arrow", "ARROW1\0\0"s), HasSubstr("Arrow table"));
  EXPECT_THAT(refusal("a.arrow", "\xff\xff\xff\xff\x10\0\0\0"s), HasSubstr("Dataset.from_file"));
  EXPECT_THAT(refusal("a.npy", "\x93NUMPY\x01\x00"s), HasSubstr("astype('uint32')"));
  EXPECT_THAT(refusal("a.bin", "\x93NUMPY\x01\x00"s), HasSubstr("a numpy array"));
  EXPECT_THAT(refusal("a.zip", "PK\x03\x04"s), HasSubstr("zip archive"));
  EXPECT_THAT(refusal("a.txt.gz", gzip(zst)), HasSubstr("compressed with zstd"));
}

TEST_F(TextFiles, WideTextIsNamed) {
  const auto wide = [](const std::string& text) {
    std::string out;
    for (const char c : text) out += {c, '\0'};
    return out;
  };
  EXPECT_THAT(refusal("a.txt", "\xff\xfe" + wide("some text")),
              AllOf(HasSubstr("UTF-16"), HasSubstr("iconv -f UTF-16 ")));
  EXPECT_THAT(refusal("a.jsonl", "\xfe\xff\0{"s), HasSubstr("text in UTF-16"));
  EXPECT_THAT(refusal("a.jsonl", wide(lines)), HasSubstr("text in UTF-16LE"));
  EXPECT_THAT(refusal("a.jsonl", "\0"s + wide(lines).substr(0, 40)), HasSubstr("text in UTF-16BE"));
  EXPECT_THAT(refusal("a.txt", "\xff\xfe\0\0a\0\0\0"s), HasSubstr("UTF-32"));
  EXPECT_THAT(refusal("a.jsonl.gz", gzip("\xff\xfe" + wide(lines))), HasSubstr("UTF-16"));
}

// As Python reads them with utf-8-sig: the mark is a signature, not a character.
TEST_F(TextFiles, ByteOrderMarks) {
  EXPECT_THAT(ids("a.txt", "\xef\xbb\xbfx\r\n"), ElementsAre('x', '\r', '\n'));
  EXPECT_EQ(ids("a.jsonl", "\xef\xbb\xbf" + lines), line_ids);
  EXPECT_EQ(ids("a.json", "\xef\xbb\xbf" + list), line_ids);
}

TEST_F(TextFiles, NamesWithCommasAndColons) {
  folder_.write("a,b.txt", "x"s);
  folder_.write("c", "x"s);
  folder_.write("d:3", "x"s);
  const auto paths = [&](const std::string& text) {
    std::vector<std::string> out;
    for (const auto& entry : parse_mixture(text, "data.train")) {
      out.push_back(entry.path.filename().string() + (entry.weight ? "*" : ""));
    }
    return out;
  };
  const std::string here = (folder_ / "").string();
  EXPECT_THAT(paths(here + "a,b.txt"), ElementsAre("a,b.txt"));
  EXPECT_THAT(paths("\"" + here + "a,b.txt\":2, " + here + "c:1"), ElementsAre("a,b.txt*", "c*"));
  EXPECT_THAT(paths(here + "d:3"), ElementsAre("d:3"));
  EXPECT_THAT(paths(here + "c:3"), ElementsAre("c*"));
  for (const char* bad : {"\"a", "\"a\"b", "\"a\"b:1", "\"\""}) {
    EXPECT_THAT(error_of<UsageError>([&] { paths(bad); }), HasSubstr("data.train")) << bad;
  }
}

TEST_F(TextFiles, WhatIsWrongInJsonIsSaid) {
  const auto says = [&](const std::string& line) { return refusal("a.jsonl", "{\"text\": \"a\"}\n" + line + "\n"); };
  EXPECT_THAT(says(R"({"text": "\ud800x"})"),
              AllOf(HasSubstr("a.jsonl:2: not JSON at byte"), HasSubstr("a lone surrogate \\ud800")));
  EXPECT_THAT(says(R"({"text": "\ud83d\u0041"})"), HasSubstr("a lone surrogate \\ud83d"));
  EXPECT_THAT(says(R"({"text": "\udc00"})"), HasSubstr("a lone surrogate \\udc00"));
  EXPECT_THAT(says(R"({"text": "a", "x": NaN})"), AllOf(HasSubstr("NaN is no JSON number"), HasSubstr("write null")));
  EXPECT_THAT(says(R"({"text": "a", "x": -Infinity})"), HasSubstr("Infinity is no JSON number"));
  EXPECT_THAT(says(R"({'text': 'a'})"), AllOf(HasSubstr("double quotes"), HasSubstr("json.dumps")));
  EXPECT_THAT(says(R"({"text": None})"), HasSubstr("None is Python's notation"));
  EXPECT_THAT(says("{\"text\": \"a\xff\"}"), HasSubstr("the byte 0xff is not UTF-8"));
  EXPECT_THAT(says("{\"text\": \"a\tb\"}"), HasSubstr("control character 0x09"));
  EXPECT_THAT(says(R"({"text": "a")"), HasSubstr("ends in the middle"));
  EXPECT_THAT(says(R"({"text": "a)"), HasSubstr("ends in the middle"));
  EXPECT_THAT(says(R"({"text": "a"} {)"), HasSubstr("not JSON at byte 15"));
  EXPECT_THAT(says(R"({"text": "a", "text": "b"})"), HasSubstr("key 'text' is given twice"));
  EXPECT_THAT(says("{\"text\": " + std::string(100000, '[')), HasSubstr("nested deeper"));
}

}  // namespace
}  // namespace lamina
