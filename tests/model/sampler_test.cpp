// The sampler: greedy, cuts, frequencies, reproducibility.
#include <cmath>
#include <limits>
#include <map>

#include <lamina/base/error.hpp>
#include <lamina/model/sampler.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina {
namespace {

const std::vector<float> logits{0.0F, 2.0F, -1.0F, 2.0F, 1.0F};

// How often each token comes in 20,000 draws, as a fraction.
std::map<std::int32_t, double> frequencies(const SamplingOptions& options) {
  constexpr int draws = 20000;
  Sampler sampler(options);
  std::map<std::int32_t, double> seen;
  for (int i = 0; i < draws; ++i) seen[sampler.pick(logits)] += 1.0 / draws;
  return seen;
}

TEST(Sampler, GreedyTakesTheFirstLargest) {
  Sampler sampler({});
  EXPECT_EQ(sampler.pick(logits), 1);
  EXPECT_EQ(sampler.pick(logits), 1);
}

TEST(Sampler, FollowsTheDistribution) {
  for (const double temperature : {0.5, 1.0, 3.0}) {
    const auto seen = frequencies({.temperature = temperature, .top_k = 0, .top_p = 1, .seed = 4});
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit) / temperature);
    for (const auto& [token, fraction] : seen) {
      const double p = std::exp(static_cast<double>(logits[static_cast<std::size_t>(token)]) / temperature) / total;
      EXPECT_NEAR(fraction, p, 5 * std::sqrt(p * (1 - p) / 20000));
    }
  }
}

TEST(Sampler, TopKKeepsTheMostLikely) {
  EXPECT_THAT(frequencies({.temperature = 1, .top_k = 1, .top_p = 1, .seed = 1}),
              ::testing::ElementsAre(::testing::Key(1)));
  EXPECT_THAT(frequencies({.temperature = 5, .top_k = 3, .top_p = 1, .seed = 1}),
              ::testing::ElementsAre(::testing::Key(1), ::testing::Key(3), ::testing::Key(4)));
  EXPECT_EQ(frequencies({.temperature = 5, .top_k = 50, .top_p = 1, .seed = 1}).size(), 5U);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  // Probabilities 0.386, 0.386, 0.142, 0.052, 0.019 (of tokens 1, 3, 4, 0, 2).
  EXPECT_EQ(frequencies({.temperature = 1, .top_k = 0, .top_p = 0.1, .seed = 1}).size(), 1U);
  EXPECT_EQ(frequencies({.temperature = 1, .top_k = 0, .top_p = 0.7, .seed = 1}).size(), 2U);
  EXPECT_EQ(frequencies({.temperature = 1, .top_k = 0, .top_p = 0.8, .seed = 1}).size(), 3U);
  EXPECT_EQ(frequencies({.temperature = 1, .top_k = 0, .top_p = 0.97, .seed = 1}).size(), 4U);
}

TEST(Sampler, SameSeedSameDraws) {
  Sampler a({.temperature = 1, .top_k = 0, .top_p = 1, .seed = 9}),
      b({.temperature = 1, .top_k = 0, .top_p = 1, .seed = 9});
  Sampler c({.temperature = 1, .top_k = 0, .top_p = 1, .seed = 10});
  int differ = 0;
  for (int i = 0; i < 100; ++i) {
    const std::int32_t token = a.pick(logits);
    EXPECT_EQ(token, b.pick(logits));
    if (token != c.pick(logits)) ++differ;
  }
  EXPECT_GT(differ, 20);
}

TEST(Sampler, SurvivesExtremeLogits) {
  Sampler sampler({.temperature = 1e-6, .top_k = 0, .top_p = 0.9, .seed = 1});
  EXPECT_EQ(sampler.pick(std::vector<float>{-3e38F, 3e38F, 0}), 1);
}

TEST(Sampler, Refuses) {
  EXPECT_THROW(Sampler({.temperature = -1, .top_k = 0, .top_p = 1, .seed = 0}), UsageError);
  EXPECT_THROW(Sampler({.temperature = NAN, .top_k = 0, .top_p = 1, .seed = 0}), UsageError);
  EXPECT_THROW(Sampler({.temperature = 1, .top_k = -1, .top_p = 1, .seed = 0}), UsageError);
  EXPECT_THROW(Sampler({.temperature = 1, .top_k = 0, .top_p = 0, .seed = 0}), UsageError);
  EXPECT_THROW(Sampler({.temperature = 1, .top_k = 0, .top_p = 1.1, .seed = 0}), UsageError);
  Sampler sampler({});
  EXPECT_THROW(static_cast<void>(sampler.pick(std::vector<float>{1, NAN})), DataError);
}

}  // namespace
}  // namespace lamina
