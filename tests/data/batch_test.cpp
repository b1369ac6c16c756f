#include "data/memory_source.hpp"
#include "data/scratch_folder.hpp"

#include <set>

#include <lamina/base/random.hpp>
#include <lamina/data/batch.hpp>

#include <gmock/gmock.h>

namespace lamina {
namespace {

using test::counting;
using test::error_of;
using test::MemorySource;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int32_t none = no_label;

std::vector<std::unique_ptr<TokenSource>> sources_of(std::vector<std::vector<std::int32_t>> all) {
  std::vector<std::unique_ptr<TokenSource>> out;
  for (auto& ids : all) out.push_back(std::make_unique<MemorySource>(std::move(ids)));
  return out;
}

TokenMixture one(std::unique_ptr<TokenSource> source, std::int64_t seq_len) {
  std::vector<std::unique_ptr<TokenSource>> sources;
  sources.push_back(std::move(source));
  return {std::array{MixtureEntry{"memory", std::nullopt}}, std::move(sources), seq_len, 1};
}

TEST(Mixture, ReadsItsNotation) {
  const auto plain = parse_mixture("a.h5", "data.train");
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(plain[0].path, "a.h5");
  EXPECT_FALSE(plain[0].weight.has_value());
  const auto quoted = parse_mixture(R"("a, b:2.h5": 0.7 , "c\"d\\e":3)", "data.train");
  ASSERT_EQ(quoted.size(), 2U);
  EXPECT_EQ(quoted[0].path, "a, b:2.h5");
  EXPECT_EQ(quoted[0].weight, 0.7);
  EXPECT_EQ(quoted[1].path, R"(c"d\e)");
  EXPECT_EQ(parse_mixture(R"("a,b:3")", "data.train")[0].path, "a,b:3");
  const auto mixed = parse_mixture("a b.h5 : 0.7,b:c.h5:3", "data.train");
  ASSERT_EQ(mixed.size(), 2U);
  EXPECT_EQ(mixed[0].path, "a b.h5");
  EXPECT_EQ(mixed[0].weight, 0.7);
  EXPECT_EQ(mixed[1].path, "b:c.h5");
  EXPECT_EQ(mixed[1].weight, 3);
  for (const char* bad : {"", "a,", ",a", "a:0", "a:-1", ":1", "a:1,b", "a:inf", "a:nan"}) {
    EXPECT_THAT(error_of<UsageError>([&] { static_cast<void>(parse_mixture(bad, "data.train")); }),
                HasSubstr("data.train"))
        << bad;
  }
}

TEST(Mixture, WithoutWeightsEveryWindowOfEverySourceOnceAnEpoch) {
  const std::array entries{MixtureEntry{"a", {}}, MixtureEntry{"b", {}}, MixtureEntry{"c", {}}};
  const TokenMixture mixture(entries, sources_of({counting(10), counting(31, 100), counting(5, 200)}), 3, 1);
  EXPECT_EQ(mixture.windows(), 3U + 10U + 1U);
  EXPECT_EQ(mixture.unused_tokens(), 0 + 0 + 1);
  EXPECT_EQ(mixture.tokens(), 46);
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    std::set<std::pair<const TokenSource*, std::int64_t>> seen;
    for (std::uint64_t i = 0; i < 14; ++i) {
      const auto place = mixture.sample(epoch * 14 + i);
      EXPECT_EQ(place.first % 3, 0);
      EXPECT_LE(place.first + 4, place.source->size());
      seen.emplace(place.source, place.first);
    }
    EXPECT_EQ(seen.size(), 14U);
  }
}

TEST(Mixture, WeightsDecideTheShares) {
  const std::array entries{MixtureEntry{"a", 3}, MixtureEntry{"b", 1}};
  const TokenMixture mixture(entries, sources_of({counting(10), counting(1000, 100)}), 3, 1);
  int first = 0;
  for (std::uint64_t i = 0; i < 400; ++i) first += mixture.sample(i).source == mixture.sources()[0].get() ? 1 : 0;
  EXPECT_EQ(first, 300);
}

TEST(Mixture, AnEpochWithoutAWholeBatchIsRefusedWhereItIsDropped) {
  const auto mixture = [](std::vector<MixtureEntry> entries, const EpochEnd& end) {
    std::vector<std::vector<std::int32_t>> ids(entries.size(), counting(31));
    return error_of<UsageError>([&] { TokenMixture(entries, sources_of(std::move(ids)), 3, 1, end); });
  };
  EXPECT_THAT(mixture({{"a", {}}}, {LastBatch::drop, 11}), HasSubstr("an epoch has 10 windows"));
  EXPECT_EQ(mixture({{"a", {}}}, {LastBatch::drop, 10}), "no error");
  EXPECT_EQ(mixture({{"a", {}}}, {LastBatch::pad, 11}), "no error");
  EXPECT_EQ(mixture({{"a", {}}}, {LastBatch::wrap, 11}), "no error");
  EXPECT_EQ(mixture({{"a", {}}, {"b", {}}}, {LastBatch::drop, 20}), "no error");
  for (const LastBatch last : {LastBatch::drop, LastBatch::pad})
    EXPECT_THAT(mixture({{"a", 1}, {"b", 2}}, {last, 2}), HasSubstr("has weights"));
  EXPECT_EQ(mixture({{"a", 1}}, {LastBatch::pad, 2}), "no error");
}

TEST(Mixture, LessThanOneWindowIsRefusedWithTheNumbers) {
  EXPECT_THAT(error_of([] { one(std::make_unique<MemorySource>(counting(4)), 4); }), HasSubstr("needs 5 tokens"));
  EXPECT_THAT(error_of([] { one(std::make_unique<MemorySource>(counting(0)), 4); }), HasSubstr("0 tokens"));
  EXPECT_EQ(error_of([] { one(std::make_unique<MemorySource>(counting(5)), 4); }), "no error");
}

TEST(TrainBatch, LabelsAreTheNextTokens) {
  const TokenMixture mixture = one(std::make_unique<MemorySource>(counting(41)), 4);
  const TrainBatches batches(mixture, {1000, false});
  TokenBatch batch;
  batches.fill(0, 10, batch);
  std::set<std::int32_t> firsts;
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(batch.labels[i], batch.tokens[i] + 1);
    if (i % 4 == 0) firsts.insert(batch.tokens[i]);
  }
  EXPECT_THAT(firsts, ElementsAre(0, 4, 8, 12, 16, 20, 24, 28, 32, 36));
  EXPECT_EQ(batch.labelled, 40);
  EXPECT_THAT(batch.positions, IsEmpty());
  EXPECT_THAT(batch.first_visible, IsEmpty());
}

TEST(TrainBatch, PaddingIsRowsWithoutLabels) {
  std::vector<std::unique_ptr<TokenSource>> sources;
  sources.push_back(std::make_unique<MemorySource>(counting(21, 1), std::vector<std::int64_t>{0, 5}));
  const TokenMixture mixture(std::array{MixtureEntry{"memory", std::nullopt}}, std::move(sources), 4, 1,
                             {LastBatch::pad, 4});
  TokenBatch batch;
  TrainBatches(mixture, {1000, true}).fill(4, 4, batch);  // five windows an epoch: one and three rows of padding
  EXPECT_EQ(batch.labels[3], batch.tokens[3] + 1);
  for (std::size_t i = 4; i < 16; ++i) {
    EXPECT_EQ(batch.tokens[i], 0);
    EXPECT_EQ(batch.labels[i], none);
    EXPECT_EQ(batch.first_visible[i], static_cast<std::int32_t>(i % 4)) << "padding sees itself only";
  }
  std::set<std::int32_t> firsts{batch.tokens[0]};
  TrainBatches(mixture, {1000, true}).fill(0, 4, batch);
  for (std::size_t i = 0; i < 16; i += 4) firsts.insert(batch.tokens[i]);
  EXPECT_THAT(firsts, ElementsAre(1, 5, 9, 13, 17));
}

TEST(TrainBatch, PartsOfABatchAreItsParts) {
  const TokenMixture mixture = one(std::make_unique<MemorySource>(counting(401)), 4);
  const TrainBatches batches(mixture, {1000, false});
  TokenBatch whole, part;
  batches.fill(30, 12, whole);
  std::vector<std::int32_t> joined;
  for (std::uint64_t first = 30; first < 42; first += 3) {
    batches.fill(first, 3, part);
    joined.insert(joined.end(), part.tokens.begin(), part.tokens.end());
  }
  EXPECT_EQ(joined, whole.tokens);
}

TEST(TrainBatch, DocumentMaskStopsAtBoundaries) {
  // Documents at 0, 3, 4 and 8; windows of 8 tokens: the first is all of the first three, label of its last token
  // begins the fourth.
  const TokenMixture mixture =
      one(std::make_unique<MemorySource>(counting(9), std::vector<std::int64_t>{0, 3, 4, 8}), 8);
  const TrainBatches batches(mixture, {100, true});
  TokenBatch batch;
  batches.fill(0, 1, batch);
  EXPECT_THAT(batch.tokens, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(batch.labels, ElementsAre(1, 2, none, none, 5, 6, 7, none));
  EXPECT_THAT(batch.positions, ElementsAre(0, 1, 2, 0, 0, 1, 2, 3));
  EXPECT_THAT(batch.first_visible, ElementsAre(0, 0, 0, 3, 4, 4, 4, 4));
  EXPECT_EQ(batch.labelled, 5);
}

TEST(TrainBatch, DocumentMaskEqualsItsDefinition) {
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    const auto size = static_cast<std::int32_t>(20 + philox(1, trial)[0] % 60);
    std::vector<std::int64_t> starts{0};
    for (std::int64_t t = 1; t < size; ++t) {
      if (philox(2, trial, static_cast<std::uint64_t>(t))[0] % 5 == 0) starts.push_back(t);
    }
    const std::set<std::int64_t> is_start(starts.begin(), starts.end());
    const TokenMixture mixture = one(std::make_unique<MemorySource>(counting(size), starts), 7);
    TokenBatch batch;
    TrainBatches(mixture, {100, true}).fill(0, static_cast<std::int64_t>(mixture.windows()), batch);
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      const std::int64_t token = batch.tokens[i];
      const auto row = static_cast<std::int32_t>(i % 7);
      std::int32_t back = 0;  // steps back to the document's or the row's beginning
      while (back < row && !is_start.contains(token - back)) ++back;
      EXPECT_EQ(batch.positions[i], back);
      EXPECT_EQ(batch.first_visible[i], row - back);
      EXPECT_EQ(batch.labels[i], is_start.contains(token + 1) ? none : token + 1);
    }
  }
}

TEST(TrainBatch, DocumentMaskNeedsBoundaries) {
  const TokenMixture mixture = one(std::make_unique<MemorySource>(counting(9)), 4);
  EXPECT_THAT(error_of([&] { TrainBatches(mixture, {100, true}); }), HasSubstr("document_mask"));
}

TEST(TrainBatch, LossMaskExcludesTargets) {
  const TokenMixture mixture = one(std::make_unique<MemorySource>(counting(5), std::vector<std::int64_t>{},
                                                                  std::vector<std::uint8_t>{1, 0, 1, 1, 0}),
                                   4);
  TokenBatch batch;
  TrainBatches(mixture, {100, false}).fill(0, 1, batch);
  EXPECT_THAT(batch.labels, ElementsAre(none, 2, 3, none));
  EXPECT_EQ(batch.labelled, 2);
}

TEST(TrainBatch, IdsBeyondTheVocabularyAreRefused) {
  const TokenMixture mixture = one(std::make_unique<MemorySource>(counting(5)), 4);
  TokenBatch batch;
  EXPECT_EQ(error_of([&] { TrainBatches(mixture, {5, false}).fill(0, 1, batch); }), "no error");
  EXPECT_THAT(error_of([&] { TrainBatches(mixture, {4, false}).fill(0, 1, batch); }), HasSubstr("token 4 has id 4"));
  EXPECT_THAT(error_of([&] { TrainBatches(mixture, {3, false}).fill(0, 1, batch); }), HasSubstr("token 3 has id 3"));
}

TEST(EvalBatch, EveryTokenIsATargetOnce) {
  for (const std::int32_t size : {2, 3, 4, 5, 8, 9, 10, 13}) {
    const auto sources = sources_of({counting(size), counting(6, 50)});
    const EvalBatches batches(sources, 4, {100, false}, WindowLabels::next_token, 0);
    TokenBatch batch;
    const auto padded = static_cast<std::int64_t>(batches.windows()) + 3;
    batches.fill(0, padded, batch);
    std::multiset<std::int32_t> targets;
    for (std::size_t i = 0; i < batch.labels.size(); ++i) {
      if (batch.labels[i] == none) continue;
      targets.insert(batch.labels[i]);
      EXPECT_EQ(batch.labels[i], batch.tokens[i] + 1);
    }
    std::multiset<std::int32_t> expected;
    for (std::int32_t id = 1; id < size; ++id) expected.insert(id);
    for (std::int32_t id = 51; id < 56; ++id) expected.insert(id);
    EXPECT_EQ(targets, expected) << size;
    EXPECT_EQ(batch.labelled, size - 1 + 5);
  }
}

TEST(EvalBatch, InsideWindowHasOneLabelLess) {
  const auto sources = sources_of({counting(10)});
  const EvalBatches batches(sources, 4, {100, false}, WindowLabels::inside_window, 0);
  TokenBatch batch;
  batches.fill(0, 4, batch);
  EXPECT_THAT(batch.labels, ElementsAre(1, 2, 3, none, 5, 6, 7, none, 9, none, none, none, none, none, none, none));
  EXPECT_THAT(batch.tokens, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0));
}

TEST(EvalBatch, LimitAndPaddingWithADocumentMask) {
  std::vector<std::unique_ptr<TokenSource>> sources;
  sources.push_back(std::make_unique<MemorySource>(counting(6), std::vector<std::int64_t>{0, 5}));
  const EvalBatches batches(sources, 4, {100, true}, WindowLabels::next_token, 0);
  EXPECT_EQ(batches.windows(), 2U);
  TokenBatch batch;
  batches.fill(1, 2, batch);
  EXPECT_THAT(batch.tokens, ElementsAre(4, 5, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(batch.labels, Each(none));
  EXPECT_THAT(batch.positions, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(batch.first_visible, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_EQ(EvalBatches(sources, 4, {100, true}, WindowLabels::next_token, 1).windows(), 1U);
}

TEST(EvalBatch, NothingToPredictIsRefused) {
  const auto sources = sources_of({counting(1)});
  EXPECT_THAT(error_of([&] {
                EvalBatches(sources, 4, {100, false}, WindowLabels::next_token, 0);
              }),
              HasSubstr("1 tokens"));
}

}  // namespace
}  // namespace lamina
