// Seeded mutations of files and lines: whatever comes is read inside its bounds or refused as a DataError.
#include "data/scratch_folder.hpp"

#include <array>

#include <lamina/base/file.hpp>
#include <lamina/base/random.hpp>
#include <lamina/data/document_encoder.hpp>
#include <lamina/data/multiple_choice.hpp>
#include <lamina/data/token_set.hpp>
#include <lamina/data/token_source.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

using test::ScratchFolder;

// `seed_text` with one to four bytes changed, removed or doubled.
std::string mutate(std::string text, std::uint64_t trial, std::size_t reach) {
  const std::uint32_t changes = 1 + philox(1, trial)[0] % 4;
  for (std::uint32_t k = 0; k < changes && !text.empty(); ++k) {
    const PhiloxBlock random = philox(2, trial, k);
    const std::size_t at = random[0] % std::min(reach, text.size());
    constexpr std::string_view marks = "{}[]\",:\\u\x80\xff\0 0-e";
    switch (random[1] % 4) {
      case 0:
        text[at] = static_cast<char>(random[2] & 0xff);
        break;
      case 1:
        text[at] = marks[random[2] % marks.size()];
        break;
      case 2:
        text.erase(at, 1 + random[2] % 3);
        break;
      default:
        text.insert(at, text.substr(at, 1 + random[2] % 8));
        break;
    }
  }
  return text;
}

TEST(Fuzz, MultipleChoiceLines) {
  const std::string seed =
      R"({"context": "a\u00e9 b", "choices": ["x", "y\n", "z"], "answer": 2, "more": [1, -2.5e3, null, {"k": true}]})";
  int accepted = 0;
  for (std::uint64_t trial = 0; trial < 100000; ++trial) {
    try {
      const MultipleChoice question = parse_multiple_choice(mutate(seed, trial, seed.size()), "f:1");
      ASSERT_LT(question.answer, question.choices.size());
      ++accepted;
    } catch (const DataError&) {
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 95000);
}

TEST(Fuzz, DocumentLines) {
  const Tokenizer tokenizer = Tokenizer::byte();
  const DocumentEncoder encoder(tokenizer, true);
  TokenizerWorkspace workspace = tokenizer.make_workspace();
  const std::string seed = R"({"text": "Some \"text\" \ud83d\ude00 \u00e9.", "id": 12})";
  int accepted = 0;
  for (std::uint64_t trial = 0; trial < 100000; ++trial) {
    EncodedDocuments out;
    try {
      encoder.add_json_line(mutate(seed, trial, seed.size()), "f:1", workspace, out);
      ASSERT_EQ(out.loss_mask.size(), out.ids.size());
      ++accepted;
    } catch (const DataError&) {
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 95000);
}

TEST(Fuzz, TokenSets) {
  const ScratchFolder folder;
  {
    TokenSetWriter writer(folder / "seed.h5", {70000, "some", "0123"});
    for (int document = 0; document < 3; ++document) {
      writer.append(std::vector<std::int32_t>{1, 69999, 3}, std::vector<std::uint8_t>{1, 0, 1});
      writer.begin_document();
    }
    writer.finish();
  }
  const std::string seed = read_file(folder / "seed.h5");
  int accepted = 0, refused = 0;
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    const auto path = folder.write("t.h5", mutate(seed, trial, seed.size()));
    try {
      const auto source = open_token_source(path, nullptr);
      std::vector<std::int32_t> ids(static_cast<std::size_t>(source->size()));
      source->read(0, ids);
      if (source->has_loss_mask()) {
        std::vector<std::uint8_t> mask(ids.size());
        source->read_loss_mask(0, mask);
      }
      ++accepted;
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace lamina
