// Windows that have no label: counted as they are filled, and refused when there is nothing else.
#include "data/memory_source.hpp"
#include "data/scratch_folder.hpp"

#include <array>

#include <lamina/data/batch.hpp>

#include <gmock/gmock.h>

namespace lamina {
namespace {

using test::counting;
using test::error_of;
using test::MemorySource;
using testing::HasSubstr;

TokenMixture one(std::unique_ptr<TokenSource> source, std::int64_t seq_len) {
  std::vector<std::unique_ptr<TokenSource>> sources;
  sources.push_back(std::move(source));
  return {std::array{MixtureEntry{"memory", std::nullopt}}, std::move(sources), seq_len, 1};
}

TEST(Labels, WindowsWithoutAnyAreCounted) {
  // Windows of 3 targets each: 1-3 (masked), 4-6 (one label), 7-9 (the one with a label begins a document).
  const std::vector<std::uint8_t> mask{1, 0, 0, 0, 0, 1, 0, 0, 1, 0};
  const std::vector<std::int64_t> starts{0, 8};
  for (const bool document_mask : {false, true}) {
    const BatchRules rules{100, document_mask};
    const TokenMixture mixture = one(std::make_unique<MemorySource>(counting(10), starts, mask), 3);
    EXPECT_EQ(TrainBatches(mixture, rules).windows_without_label(), document_mask ? 2U : 1U);
    for (const WindowLabels labels : {WindowLabels::next_token, WindowLabels::inside_window}) {
      const EvalBatches batches(mixture.sources(), 3, rules, labels, 0);
      TokenBatch batch;
      std::uint64_t without = 0;
      for (std::uint64_t w = 0; w < batches.windows(); ++w) {
        batches.fill(w, 1, batch);
        without += batch.labelled == 0 ? 1U : 0U;
      }
      EXPECT_EQ(batches.windows_without_label(), without) << "as fill does it";
    }
  }
}

TEST(Labels, DataWithoutAnyAreRefused) {
  const TokenMixture masked = one(
      std::make_unique<MemorySource>(counting(10), std::vector<std::int64_t>{0}, std::vector<std::uint8_t>(10, 0)), 3);
  const auto of_training = error_of([&] {
    static_cast<void>(TrainBatches(masked, {100, false}).windows_without_label());
  });
  EXPECT_THAT(of_training, HasSubstr("memory: no token of its 3 windows of 3 has a label"));
  EXPECT_THAT(
      error_of([&] {
        static_cast<void>(
            EvalBatches(masked.sources(), 3, {100, false}, WindowLabels::next_token, 0).windows_without_label());
      }),
      HasSubstr("has a label"));
  // Documents of one token each.
  std::vector<std::int64_t> starts(10);
  std::iota(starts.begin(), starts.end(), 0);
  const TokenMixture single = one(std::make_unique<MemorySource>(counting(10), starts), 3);
  EXPECT_EQ(TrainBatches(single, {100, false}).windows_without_label(), 0U);
  EXPECT_THAT(error_of([&] {
                static_cast<void>(TrainBatches(single, {100, true}).windows_without_label());
              }),
              HasSubstr("has a label"));
}

}  // namespace
}  // namespace lamina
