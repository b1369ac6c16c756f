#include <algorithm>
#include <array>
#include <cmath>
#include <map>
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

TEST(DataSampler, BegunAnewItHasEveryWindowOnceInAnotherOrder) {
  const auto order = [](std::uint64_t times) {
    DataSampler sampler(1, std::array{SampleStream{500, 1}});
    sampler.begin_anew(times);
    std::vector<std::uint64_t> out;
    for (std::uint64_t i = 0; i < 500; ++i) out.push_back(sampler.at(i).window);
    return out;
  };
  const auto first = order(0), anew = order(1);
  EXPECT_EQ(DataSampler(1, std::array{SampleStream{500, 1}}).at(7).window, first[7]);
  EXPECT_NE(anew, first);
  EXPECT_NE(anew, order(2));
  EXPECT_EQ(std::set<std::uint64_t>(anew.begin(), anew.end()).size(), 500U);
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

std::uint64_t up_to_batch(std::uint64_t windows, std::uint64_t batch) { return (windows + batch - 1) / batch * batch; }

// Each epoch is whole batches: all windows once and then padding, or as many windows once as fill batches.
TEST(DataSampler, DropAndPadEndEpochsWithABatch) {
  for (const std::uint64_t windows : {1U, 5U, 11U, 12U, 13U, 23U, 24U, 37U, 1000U}) {
    for (const std::uint64_t batch : {1U, 4U, 12U}) {
      for (const LastBatch last : {LastBatch::drop, LastBatch::pad}) {
        const bool drop = last == LastBatch::drop;
        if (drop && windows < batch) continue;
        const std::uint64_t length = drop ? windows / batch * batch : up_to_batch(windows, batch);
        EXPECT_EQ(samples_an_epoch(windows, {last, batch}), length);
        const DataSampler sampler(5, std::array{SampleStream{windows, 1}}, {last, batch});
        for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
          std::set<std::uint64_t> seen;
          for (std::uint64_t i = 0; i < length; ++i) {
            const Draw draw = sampler.at(epoch * length + i);
            EXPECT_EQ(draw.epoch, epoch);
            EXPECT_EQ(draw.padding, i >= windows) << windows << " in batches of " << batch;
            EXPECT_LT(draw.window, windows);
            if (draw.padding) continue;
            EXPECT_TRUE(seen.insert(draw.window).second);
          }
          EXPECT_EQ(seen.size(), std::min(windows, length));
        }
      }
    }
  }
}

TEST(DataSampler, LastBatchDoesNotMatterWhereBatchesDivideAnEpoch) {
  const std::array streams{SampleStream{36, 1}};
  const DataSampler wrap(3, streams), drop(3, streams, {LastBatch::drop, 12}), pad(3, streams, {LastBatch::pad, 12});
  for (std::uint64_t i = 0; i < 150; ++i) {
    EXPECT_EQ(drop.at(i).window, wrap.at(i).window);
    EXPECT_EQ(pad.at(i).window, wrap.at(i).window);
    EXPECT_FALSE(pad.at(i).padding);
  }
}

TEST(DataSampler, WhatIsDroppedDiffersBetweenEpochs) {
  const DataSampler sampler(3, std::array{SampleStream{37, 1}}, {LastBatch::drop, 12});
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 36 * 10; ++i) seen.insert(sampler.at(i).window);
  EXPECT_EQ(seen.size(), 37U);
}

// The same for every last batch: steps go on at one number, whatever the number of ranks was before.
TEST(DataSampler, EpochsThatEndInABatchGoOnAtAnotherWorldSize) {
  constexpr std::uint64_t windows = 29, batch = 12, steps = 9;
  for (const LastBatch last : {LastBatch::wrap, LastBatch::drop, LastBatch::pad}) {
    const EpochEnd end{last, batch};
    const std::uint64_t length = samples_an_epoch(windows, end);
    for (const std::uint64_t first_ranks : {1U, 2U, 3U, 4U}) {
      for (const std::uint64_t then_ranks : {1U, 2U, 3U, 4U}) {
        std::map<std::uint64_t, std::map<std::uint64_t, int>> seen;  // epoch -> window -> times
        std::uint64_t next_sample = 0, padding = 0;
        for (std::uint64_t step = 0; step < steps; ++step, next_sample += batch) {
          const DataSampler fresh(3, std::array{SampleStream{windows, 1}}, end);
          const std::uint64_t ranks = step < 4 ? first_ranks : then_ranks;  // the fourth step ends inside an epoch
          for (std::uint64_t rank = 0; rank < ranks; ++rank) {
            for (std::uint64_t i = rank; i < batch; i += ranks) {
              const Draw draw = fresh.at(next_sample + i);
              draw.padding ? ++padding : static_cast<std::uint64_t>(++seen[draw.epoch][draw.window]);
            }
          }
        }
        std::uint64_t drawn = padding;
        for (const auto& [epoch, of_epoch] : seen) {
          for (const auto& [window, times] : of_epoch) EXPECT_EQ(times, 1);
          const bool whole = (epoch + 1) * length <= steps * batch;
          if (whole) {
            EXPECT_EQ(of_epoch.size(), std::min(windows, length));
          }
          drawn += of_epoch.size();
        }
        EXPECT_EQ(drawn, steps * batch);
        EXPECT_EQ(padding, last == LastBatch::pad ? 3 * 7U : 0U);  // three epochs of 29 + 7
      }
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
