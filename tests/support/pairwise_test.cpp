#include "support/pairwise.hpp"

#include <random>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

bool everything(std::size_t, std::size_t, std::size_t, std::size_t) { return true; }

void expect_all_pairs(const std::vector<std::size_t>& sizes, const AllowedPair& allowed,
                      const std::vector<ProductCase>& cases) {
  for (const ProductCase& values : cases) {
    ASSERT_EQ(values.size(), sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) ASSERT_LT(values[i], sizes[i]);
    EXPECT_TRUE(is_allowed(values, allowed));
  }
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    for (std::size_t b = a + 1; b < sizes.size(); ++b) {
      std::set<std::pair<std::size_t, std::size_t>> seen;
      for (const ProductCase& values : cases) seen.insert({values[a], values[b]});
      for (std::size_t u = 0; u < sizes[a]; ++u) {
        for (std::size_t v = 0; v < sizes[b]; ++v) {
          EXPECT_EQ(seen.contains({u, v}), allowed(a, u, b, v))
              << "value " << u << " of " << a << " with value " << v << " of " << b;
        }
      }
    }
  }
}

TEST(Pairwise, HoldsEveryPairOfAnyTwoDimensions) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<std::size_t> sizes(2 + random() % 9);
    for (std::size_t& size : sizes) size = 1 + random() % 7;
    expect_all_pairs(sizes, everything, pairwise_cases(sizes, everything, static_cast<std::uint64_t>(trial)));
  }
}

TEST(Pairwise, IsNotMuchLongerThanItMustBe) {
  const std::vector<std::size_t> sizes{12, 5, 5, 4, 4, 4, 3, 3, 2, 2, 2};
  const std::vector<ProductCase> cases = pairwise_cases(sizes, everything, 1);
  EXPECT_GE(cases.size(), 60u);  // the two largest dimensions need as many
  EXPECT_LE(cases.size(), 75u);
}

TEST(Pairwise, LeavesOutWhatIsNotAllowed) {
  const std::vector<std::size_t> sizes{6, 3, 4, 2};
  const AllowedPair allowed = [](std::size_t a, std::size_t u, std::size_t b, std::size_t v) {
    return !(a == 0 && u < 2 && b == 1 && v > 0) && !(a == 1 && u == 2 && b == 3 && v == 1);
  };
  expect_all_pairs(sizes, allowed, pairwise_cases(sizes, allowed, 5));
}

TEST(Pairwise, IsTheSameForTheSameSeedOnly) {
  const std::vector<std::size_t> sizes{5, 4, 4, 3, 2};
  EXPECT_EQ(pairwise_cases(sizes, everything, 9), pairwise_cases(sizes, everything, 9));
  EXPECT_NE(pairwise_cases(sizes, everything, 9), pairwise_cases(sizes, everything, 10));
}

TEST(Pairwise, RefusesAPairThatNoCaseCanHold) {
  const std::vector<std::size_t> sizes{2, 2, 2};
  // 0 of the first two may stand together, but neither goes with any value of the third.
  const AllowedPair allowed = [](std::size_t a, std::size_t u, std::size_t b, std::size_t) {
    return b != 2 || u != 0 || a > 1;
  };
  EXPECT_THROW(static_cast<void>(pairwise_cases(sizes, allowed, 1)), std::logic_error);
}

TEST(Product, CountsAndNumbersAllCases) {
  const std::vector<std::size_t> sizes{3, 1, 4, 2};
  ASSERT_EQ(product_size(sizes), 24u);
  std::set<ProductCase> seen;
  for (std::uint64_t index = 0; index < 24; ++index) seen.insert(product_case(sizes, index));
  EXPECT_EQ(seen.size(), 24u);
}

}  // namespace
}  // namespace lamina::test
