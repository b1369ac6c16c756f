#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include <lamina/data/sampler.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

TEST(DataSampler, EveryWindowOnceAnEpoch) {
  for (const std::uint64_t windows : {1U, 2U, 3U, 7U, 64U, 1000U, 4097U}) {
    const DataSampler sampler(5, std::array{SampleStream{windows, 1}});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::set<std::uint64_t> seen;
      for (std::uint64_t i = 0; i < windows; ++i) {
        const Draw draw = sampler.at(epoch * windows + i);
        EXPECT_EQ(draw.stream, 0U);
        EXPECT_EQ(draw.epoch, epoch);
        EXPECT_LT(draw.window, windows);
        seen.insert(draw.window);
      }
      EXPECT_EQ(seen.size(), windows);
    }
  }
}

TEST(DataSampler, OrderDependsOnSeedAndEpoch) {
  const auto order = [](std::uint64_t seed, std::uint64_t first) {
    const DataSampler sampler(seed, std::array{SampleStream{500, 1}});
    std::vector<std::uint64_t> out;
    for (std::uint64_t i = 0; i < 500; ++i) out.push_back(sampler.at(first + i).window);
    return out;
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(2, 0));
  EXPECT_NE(order(1, 0), order(1, 500));
  EXPECT_FALSE(std::is_sorted(order(1, 0).begin(), order(1, 0).end()));
}

// The samples of a run are the same whichever ranks take them and wherever it was restarted.
TEST(DataSampler, NoGapAndNoDuplicateAcrossWorldSizesAndRestarts) {
  const std::array streams{SampleStream{37, 1}};
  constexpr std::uint64_t batch = 12, steps = 20;
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 0; i < batch * steps; ++i) expected.push_back(DataSampler(3, streams).at(i).window);
  for (const std::uint64_t first_ranks : {1U, 2U, 3U, 4U, 6U, 12U}) {
    for (const std::uint64_t then_ranks : {1U, 3U, 4U}) {
      std::vector<std::uint64_t> seen(batch * steps, ~std::uint64_t{0});
      for (std::uint64_t step = 0; step < steps; ++step) {
        const std::uint64_t ranks = step < 7 ? first_ranks : then_ranks;
        const DataSampler fresh(3, streams);
        for (std::uint64_t rank = 0; rank < ranks; ++rank) {
          for (std::uint64_t i = 0; i < batch / ranks; ++i) {
            const std::uint64_t sample = step * batch + rank * (batch / ranks) + i;
            seen[sample] = fresh.at(sample).window;
          }
        }
      }
      EXPECT_EQ(seen, expected);
    }
  }
}

TEST(DataSampler, StreamsGetTheirShareOfEveryPrefix) {
  const std::array streams{SampleStream{10, 0.5}, SampleStream{1000, 0.3}, SampleStream{7, 0.15},
                           SampleStream{3, 0.05}};
  const DataSampler sampler(9, streams);
  std::array<double, 4> count{};
  for (std::uint64_t i = 0; i < 20000; ++i) {
    count[sampler.at(i).stream] += 1;
    for (std::size_t k = 0; k < 4; ++k) {
      ASSERT_LT(std::abs(count[k] - streams[k].weight * static_cast<double>(i + 1)), 4.0) << i << " " << k;
    }
  }
}

TEST(DataSampler, EachStreamGoesThroughItsOwnEpochs) {
  const std::array streams{SampleStream{10, 3}, SampleStream{33, 1}, SampleStream{5, 2}};
  const DataSampler sampler(9, streams);
  std::array<std::set<std::uint64_t>, 3> seen;
  std::array<std::uint64_t, 3> drawn{};
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Draw draw = sampler.at(i);
    EXPECT_EQ(draw.epoch, drawn[draw.stream] / streams[draw.stream].windows);
    if (drawn[draw.stream]++ % streams[draw.stream].windows == 0) seen[draw.stream].clear();
    EXPECT_TRUE(seen[draw.stream].insert(draw.window).second) << i;
  }
}

TEST(DataSampler, LateSamplesAreExact) {
  const DataSampler sampler(1, std::array{SampleStream{1000, 1}, SampleStream{1000, 2}});
  const std::uint64_t late = (std::uint64_t{1} << 62) + 12345;
  std::set<std::tuple<std::size_t, std::uint64_t, std::uint64_t>> seen;
  for (std::uint64_t i = 0; i < 600; ++i) {
    const Draw draw = sampler.at(late + i);
    EXPECT_TRUE(seen.emplace(draw.stream, draw.epoch, draw.window).second);
  }
}

}  // namespace
}  // namespace lamina
