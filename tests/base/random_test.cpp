#include <cmath>
#include <set>
#include <vector>

#include <lamina/base/random.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

// Known answers published with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Normal, MomentsOfTheStandardNormal) {
  const std::uint64_t key = stream_key(1, "weights");
  double mean = 0, variance = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) mean += normal_at(key, static_cast<std::uint64_t>(i)) / n;
  for (int i = 0; i < n; ++i) variance += std::pow(normal_at(key, static_cast<std::uint64_t>(i)) - mean, 2) / n;
  EXPECT_NEAR(mean, 0, 0.02);
  EXPECT_NEAR(variance, 1, 0.02);
}

TEST(Normal, AnySliceHoldsTheSameElements) {
  for (const std::uint64_t first : {0u, 1u, 2u, 7u}) {
    for (const std::size_t count : {0u, 1u, 2u, 5u}) {
      std::vector<float> slice(count);
      fill_normal(9, first, 0.5, slice);
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(slice[i], static_cast<float>(0.5 * normal_at(9, first + i)));
    }
  }
}

TEST(Normal, StreamsDiffer) {
  EXPECT_NE(stream_key(1, "a"), stream_key(1, "b"));
  EXPECT_NE(stream_key(1, "a"), stream_key(2, "a"));
}

TEST(Permute, IsAPermutationOfEverySize) {
  for (const std::uint64_t size : {1u, 2u, 3u, 7u, 64u, 1000u}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t image = permute_index(42, size, i);
      EXPECT_LT(image, size);
      seen.insert(image);
    }
    EXPECT_EQ(seen.size(), size);
  }
}

TEST(Permute, KeysGiveDifferentOrders) {
  int equal = 0;
  for (std::uint64_t i = 0; i < 100; ++i) equal += permute_index(1, 1000, i) == permute_index(2, 1000, i) ? 1 : 0;
  EXPECT_LT(equal, 5);
}

}  // namespace
}  // namespace lamina
