#include "data/scratch_folder.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <lamina/data/token_layout.hpp>
#include <lamina/data/token_source.hpp>

#include <gmock/gmock.h>

namespace lamina {
namespace {

using test::error_of;
using test::ScratchFolder;
using testing::AllOf;
using testing::HasSubstr;

template <class T>
TokenLayout layout_of(const std::vector<T>& values, const HeaderlessRules& rules = {}) {
  const auto bytes = std::as_bytes(std::span(values));
  return read_headerless_layout(bytes.first(std::min(bytes.size(), headerless_head_bytes)), bytes.size(), rules, "f");
}
template <class T>
std::string refusal(const std::vector<T>& values, const HeaderlessRules& rules = {}) {
  return error_of([&] { static_cast<void>(layout_of(values, rules)); });
}

// Ids as a text has them: no two neighbours tell anything.
template <class T>
std::vector<T> some_ids(std::size_t count, T below) {
  std::vector<T> ids(count);
  for (std::size_t i = 0; i < count; ++i)
    ids[i] = static_cast<T>((i * 7919 + i / 3 + 13) % static_cast<std::size_t>(below));
  return ids;
}

constexpr HeaderlessRules narrow{BinDtype::uint16, 151936}, wide{BinDtype::uint32, 151936};

TEST(HeaderlessLayout, HasWholeTokens) {
  EXPECT_EQ(layout_of(some_ids<std::uint16_t>(5, 50257)).count, 5);
  EXPECT_THAT(refusal(std::vector<char>(11)), HasSubstr("at byte 10"));
  EXPECT_EQ(layout_of(some_ids<std::uint32_t>(5, 151936), wide).count, 5);
  EXPECT_THAT(refusal(std::vector<char>(10), wide), AllOf(HasSubstr("at byte 8"), HasSubstr("uint32 tokens take 4")));
}

TEST(HeaderlessLayout, ALargeVocabularyNeedsTheWidth) {
  const auto ids = some_ids<std::uint32_t>(4000, 151936);
  EXPECT_THAT(refusal(ids, {BinDtype::automatic, 151936}),
              AllOf(HasSubstr("vocabulary of 151936 does not fit uint16"), HasSubstr("data.bin_dtype to uint32")));
  EXPECT_THAT(refusal(ids, {BinDtype::automatic, 65537, "--bin_dtype"}), HasSubstr("set --bin_dtype to uint32"));
  EXPECT_EQ(layout_of(ids, wide).count, 4000);
  EXPECT_EQ(layout_of(ids, wide).element, TokenElement::u32);
  EXPECT_EQ(layout_of(some_ids<std::uint16_t>(4000, 50257), narrow).count, 4000);
  EXPECT_EQ(layout_of(some_ids<std::uint16_t>(4000, 50257), {BinDtype::automatic, 65536}).count, 4000);
}

TEST(HeaderlessLayout, WhatReadsAsWiderIntegersIsDoubted) {
  const auto doubt = HasSubstr("set data.bin_dtype to uint32 or to uint16");
  EXPECT_THAT(refusal(some_ids<std::uint32_t>(4000, 32000), {BinDtype::automatic, 32000}), doubt);
  EXPECT_THAT(refusal(some_ids<std::uint32_t>(4000, 151936)), doubt);
  EXPECT_THAT(refusal(some_ids<std::uint32_t>(400, 3)), doubt);
  EXPECT_THAT(refusal(some_ids<std::uint32_t>(600000, 32000)), doubt);  // longer than the head
  EXPECT_EQ(refusal(some_ids<std::uint32_t>(4000, 32000), narrow), "no error");
  const auto eight_bytes = HasSubstr("read as int64");
  EXPECT_THAT(refusal(some_ids<std::int64_t>(4000, 32000)), eight_bytes);
  EXPECT_THAT(refusal(some_ids<std::int64_t>(4000, 151936), wide), eight_bytes);
}

TEST(HeaderlessLayout, OrdinaryTokensAreNotDoubted) {
  for (const int vocab : {2, 5, 10, 16, 17, 256, 50257}) {
    EXPECT_EQ(layout_of(some_ids(4000, static_cast<std::uint16_t>(vocab))).element, TokenElement::u16) << vocab;
  }
  EXPECT_EQ(layout_of(std::vector<std::uint16_t>(4000, 0)).count, 4000);
  EXPECT_EQ(layout_of(std::vector<std::uint16_t>{7, 0, 9, 0}).count, 4);  // too few to tell
  std::vector<std::uint16_t> late(600000, 0);
  std::iota(late.begin() + 1, late.begin() + 20, 100);
  EXPECT_EQ(layout_of(late).count, 600000);
}

TEST(HeaderlessLayout, ADamagedLlmcFileIsNotReadAsTokens) {
  const auto llmc = [](std::int32_t magic, std::int32_t count, std::int32_t width) {
    std::vector<std::uint16_t> file(512 + static_cast<std::size_t>(count * width / 2), 321);
    std::fill_n(file.begin(), 512, 0);
    const std::int32_t head[3] = {magic, 1, count};
    std::memcpy(file.data(), head, sizeof(head));
    return file;
  };
  const auto wrong = HasSubstr("not that of llm.c tokens");
  for (int bit = 0; bit < 32; ++bit) {
    const std::int32_t magic = 20240520 ^ static_cast<std::int32_t>(std::uint32_t{1} << bit);
    EXPECT_THAT(refusal(llmc(magic, 100, 2)), wrong) << bit;
    EXPECT_THAT(refusal(llmc(magic, 100, 4), wide), wrong) << bit;
  }
  EXPECT_THAT(refusal(llmc(20240326, 100, 2)), wrong);  // a model of llm.c
  auto damaged_count = llmc(1, 100, 2);
  damaged_count[4] = 99;
  EXPECT_THAT(refusal(damaged_count), wrong);
  EXPECT_EQ(refusal(damaged_count, narrow), "no error");  // said to be tokens, and not proved otherwise
}

TEST(HeaderlessLayout, TheRulesReachTheFiles) {
  const ScratchFolder folder;
  const auto path = folder.write_values("a.bin", some_ids<std::uint32_t>(4000, 32000));
  EXPECT_THAT(error_of([&] { static_cast<void>(open_token_source(path, nullptr)); }), HasSubstr("a.bin: the width"));
  const auto source = open_token_source(path, {nullptr, wide});
  EXPECT_EQ(source->size(), 4000);
  EXPECT_EQ(source->format(), "uint32 tokens");
}

}  // namespace
}  // namespace lamina
