#include "fast_exp.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace lamina::cpu {
namespace {

// Error in units of the last place of the float nearest to the true value.
double error_in_ulp(float got, float x) {
  const double want = std::exp(static_cast<double>(x));
  const float nearest = static_cast<float>(want);
  const double ulp = static_cast<double>(std::nextafter(nearest, INFINITY)) - static_cast<double>(nearest);
  return std::abs(static_cast<double>(got) - want) / ulp;
}

TEST(FastExp, IsAccurateOverTheRange) {
  double worst = 0;
  for (std::int64_t i = 0; i < 4'000'000; i += width) {
    Float8 x;
    for (int j = 0; j < width; ++j) x[j] = static_cast<float>(-86.6 + 175.3 * static_cast<double>(i + j) / 4e6);
    const Float8 y = exp8(x);
    for (int j = 0; j < width; ++j) worst = std::max(worst, error_in_ulp(y[j], x[j]));
  }
  EXPECT_LT(worst, 1.5);
}

TEST(FastExp, IsExactAtZeroAndHandlesTheEnds) {
  const float inf = std::numeric_limits<float>::infinity();
  const Float8 y = exp8(Float8{0.0F, -0.0F, -inf, inf, -1000.0F, 1000.0F, std::nanf(""), 88.72283F});
  EXPECT_EQ(y[0], 1.0F);
  EXPECT_EQ(y[1], 1.0F);
  EXPECT_EQ(y[2], 0.0F);
  EXPECT_EQ(y[3], inf);
  EXPECT_EQ(y[4], 0.0F);
  EXPECT_EQ(y[5], inf);
  EXPECT_TRUE(std::isnan(y[6]));
  EXPECT_TRUE(std::isfinite(y[7]));
}

TEST(FastExp, NeverDecreasesAndHasNoSubnormalResults) {
  float before = 0;
  for (int i = 0; i < 200'000; ++i) {
    const float y = exp8(splat(-88.0F + 1e-5F * static_cast<float>(i)))[0];
    EXPECT_GE(y, before);
    EXPECT_TRUE(y == 0 || y >= std::numeric_limits<float>::min());
    before = y;
  }
  EXPECT_GT(before, 0.0F);
}

TEST(Lanes, SumsDependOnLengthOnly) {
  float memory[64 + 100];
  for (std::int64_t n = 0; n <= 100; ++n) {
    float first = 0;
    for (std::int64_t shift = 0; shift < 16; ++shift) {
      float* x = memory + shift;
      double want = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        x[i] = 1.0F / static_cast<float>(i + 1);
        want += static_cast<double>(x[i]);
      }
      const float sum = sum_over(n, [&](auto io, std::int64_t i) { return io.load(x + i); });
      if (shift == 0) first = sum;
      EXPECT_EQ(sum, first);
      EXPECT_NEAR(static_cast<double>(sum), want, 1e-5);
    }
  }
}

}  // namespace
}  // namespace lamina::cpu
