#include "data/scratch_folder.hpp"

#include <lamina/base/file.hpp>
#include <lamina/data/document_encoder.hpp>
#include <lamina/data/token_source.hpp>
#include <lamina/data/tokenize_files.hpp>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace lamina {
namespace {

using test::error_of;
using test::ScratchFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

const fs::path source_dir = LAMINA_SOURCE_DIR;

Ids all_tokens(const TokenSource& source) {
  Ids ids(static_cast<std::size_t>(source.size()));
  source.read(0, ids);
  return ids;
}

TokenizeRequest request_for(const std::vector<fs::path>& inputs, const fs::path& output) {
  TokenizeRequest request;
  request.inputs = inputs;
  request.output = output;
  request.identity = {"some", "00"};
  return request;
}

TEST(TokenizeFiles, DocumentsInTheOrderOfTheInputs) {
  const ScratchFolder folder;
  const Tokenizer tokenizer = Tokenizer::byte();
  const auto text = folder.write("a.txt", "ab");
  const auto lines = folder.write("b.jsonl", "{\"text\": \"c\"}\n\n{\"text\": \"\"}\n{\"text\": \"de\"}");
  const auto done = tokenize_files(request_for({text, lines, text}, folder / "t.h5"), tokenizer);
  EXPECT_EQ(done.documents, 5);
  EXPECT_EQ(done.bytes, done.total_bytes);
  const auto source = open_token_source(folder / "t.h5", nullptr);
  EXPECT_THAT(all_tokens(*source), ElementsAre('a', 'b', 256, 'c', 256, 256, 'd', 'e', 256, 'a', 'b', 256));
  EXPECT_THAT(source->document_starts(), ElementsAre(0, 3, 5, 6, 9));
  EXPECT_EQ(source->declared_vocab(), 257);
  EXPECT_FALSE(source->has_loss_mask());
}

TEST(TokenizeFiles, WithoutEndOfTextEmptyDocumentsLeaveNoTrace) {
  const ScratchFolder folder;
  auto request = request_for({folder.write("b.jsonl", "{\"text\": \"c\"}\n{\"text\": \"\"}\n{\"text\": \"d\"}\n")},
                             folder / "t.h5");
  request.append_eos = false;
  EXPECT_EQ(tokenize_files(request, Tokenizer::byte()).documents, 2);
  const auto source = open_token_source(folder / "t.h5", nullptr);
  EXPECT_THAT(all_tokens(*source), ElementsAre('c', 'd'));
  EXPECT_THAT(source->document_starts(), ElementsAre(0, 1));
}

// Text with every kind of trouble between passages that can be cut.
std::string troubled_text() {
  const std::string prose = read_file(source_dir / "inputs/king_james_validation.txt").substr(0, 20000);
  const auto texts = nlohmann::json::parse(read_file(source_dir / "tests/tokenizer/goldens/texts.json"));
  std::string out;
  std::size_t at = 0;
  for (const auto& text : texts) {
    if (!text.is_string()) continue;
    out += text.get<std::string>() + prose.substr(at % 15000, 400 + at % 300) + " word " + text.get<std::string>();
    at += 977;
  }
  return out + prose;
}

TEST(TokenizeFiles, PiecesAndThreadsChangeNoId) {
  const ScratchFolder folder;
  const std::string text = troubled_text();
  const auto path = folder.write("a.txt", text);
  int in_pieces = 0;
  for (const char* name :
       {"base_gpt2.json", "base_llama2.json", "base_llama3.json", "base_qwen2.json", "base_smollm2.json"}) {
    const Tokenizer tokenizer = Tokenizer::load(source_dir / "tests/tokenizer/goldens" / name);
    const Ids expected = tokenizer.encode(text, true);
    for (const std::size_t block : {std::size_t{300}, std::size_t{1001}, std::size_t{7000}}) {
      auto request = request_for({path}, folder / "t.h5");
      request.append_eos = false;
      request.threads = block % 4 + 1;
      request.block_bytes = block;
      int blocks = 0;
      request.progress = [&](const TokenizeProgress&) { ++blocks; };
      tokenize_files(request, tokenizer);
      EXPECT_EQ(all_tokens(*open_token_source(folder / "t.h5", nullptr)), expected) << name << " " << block;
      in_pieces += blocks > 1 ? 1 : 0;
    }
  }
  EXPECT_GE(in_pieces, 12);  // all but those of Llama 2, which marks the beginning of every text
}

TEST(TokenizeFiles, JsonLinesAcrossBlocks) {
  const ScratchFolder folder;
  std::string text;
  Ids expected;
  for (int i = 0; i < 500; ++i) {
    const std::string body(static_cast<std::size_t>(i * 7 % 90), static_cast<char>('a' + i % 26));
    text += "{\"text\": \"" + body + "\"}\n";
    expected.insert(expected.end(), body.begin(), body.end());
    expected.push_back(256);
  }
  const auto path = folder.write("a.jsonl", text);
  for (const std::size_t threads : {1U, 2U, 5U}) {
    auto request = request_for({path}, folder / "t.h5");
    request.threads = threads;
    request.block_bytes = 64;
    EXPECT_EQ(tokenize_files(request, Tokenizer::byte()).documents, 500);
    EXPECT_EQ(all_tokens(*open_token_source(folder / "t.h5", nullptr)), expected);
  }
}

TEST(TokenizeFiles, TheFirstBrokenLineIsNamedAndNothingIsWritten) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 1; i <= 400; ++i) text += i == 250 || i == 350 ? "{broken\n" : "{\"text\": \"some words\"}\n";
  auto request = request_for({folder.write("a.jsonl", text)}, folder.write("t.h5", "old"));
  request.threads = 4;
  request.block_bytes = 100;
  EXPECT_THAT(error_of([&] { tokenize_files(request, Tokenizer::byte()); }), HasSubstr("a.jsonl:250: not JSON"));
  EXPECT_EQ(read_file(folder / "t.h5"), "old");
  EXPECT_THAT(folder.names(), testing::UnorderedElementsAre("a.jsonl", "t.h5"));
}

TEST(TokenizeFiles, IllFormedTextIsNamedWithItsOffset) {
  const ScratchFolder folder;
  std::string text;
  while (text.size() < 5000) text += "word and word ";
  text[4321] = '\xff';
  auto request = request_for({folder.write("a.txt", text)}, folder / "t.h5");
  request.append_eos = false;
  request.block_bytes = 256;
  const Tokenizer tokenizer = Tokenizer::load(source_dir / "tests/tokenizer/goldens/base_gpt2.json");
  EXPECT_THAT(error_of([&] { tokenize_files(request, tokenizer); }), HasSubstr("a.txt: not UTF-8 at byte 4321"));
  EXPECT_EQ(error_of([&] { tokenize_files(request, Tokenizer::byte()); }), "no error");
}

TEST(TokenizeFiles, Refusals) {
  const ScratchFolder folder;
  const Tokenizer tokenizer = Tokenizer::byte();
  const auto text = folder.write("a.txt", "ab");
  const auto refusal = [&](const TokenizeRequest& request) {
    return error_of<Error>([&] { tokenize_files(request, tokenizer); });
  };
  EXPECT_THAT(refusal(request_for({text}, text)), HasSubstr("input and output"));
  EXPECT_THAT(refusal(request_for({text}, folder / ".")), HasSubstr("not a regular file"));
  EXPECT_THAT(refusal(request_for({folder / "none.txt"}, folder / "t.h5")), HasSubstr("none.txt"));
  EXPECT_THAT(refusal(request_for({folder.write("a.csv", "x")}, folder / "t.h5")), HasSubstr("--format"));
  auto as_text = request_for({folder / "a.csv"}, folder / "t.h5");
  as_text.format = TextFormat::text;
  EXPECT_EQ(refusal(as_text), "no error");
  auto empty = request_for({folder.write("e.txt", "")}, folder / "e.h5");
  empty.append_eos = false;
  EXPECT_THAT(refusal(empty), HasSubstr("no tokens"));
}

TEST(TokenizerIdentity, MismatchIsRefused) {
  const ScratchFolder folder;
  auto request = request_for({folder.write("a.txt", "ab")}, folder / "t.h5");
  request.identity = identify_tokenizer("byte");
  tokenize_files(request, Tokenizer::byte());
  const auto source = open_token_source(folder / "t.h5", nullptr);
  EXPECT_EQ(error_of([&] { check_tokenizer(*source, identify_tokenizer("byte")); }), "no error");
  const auto other = identify_tokenizer((source_dir / "tests/tokenizer/goldens/base_gpt2.json").string());
  EXPECT_THAT(error_of([&] { check_tokenizer(*source, other); }),
              AllOf(HasSubstr("another tokenizer"), HasSubstr("byte")));
  const Tokenizer tokenizer = Tokenizer::byte();
  EXPECT_EQ(error_of([&] { check_tokenizer(*open_token_source(folder / "a.txt", &tokenizer), other); }), "no error");
}

}  // namespace
}  // namespace lamina
