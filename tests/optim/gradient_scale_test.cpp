#include <cmath>
#include <limits>

#include <lamina/optim/gradient_scale.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

TEST(GradientScale, MeanOverTokensAndNormBeforeClipping) {
  const GradientScale scale = gradient_scale(400.0, 10, 0);
  EXPECT_DOUBLE_EQ(scale.norm, 2.0);
  EXPECT_DOUBLE_EQ(scale.clip, 1.0);
  EXPECT_DOUBLE_EQ(scale.scale, 0.1);
}

TEST(GradientScale, ClipsAsTorchDoes) {
  const GradientScale scale = gradient_scale(400.0, 10, 1.0);
  EXPECT_DOUBLE_EQ(scale.norm, 2.0);
  EXPECT_DOUBLE_EQ(scale.clip, 1.0 / (2.0 + 1e-6));
  EXPECT_DOUBLE_EQ(gradient_scale(400.0, 10, 3.0).clip, 1.0);
}

TEST(GradientScale, NoTokensChangeNothing) {
  const GradientScale scale = gradient_scale(0.0, 0, 1.0);
  EXPECT_EQ(scale.scale, 0.0);
  EXPECT_EQ(scale.norm, 0.0);
}

TEST(GradientScale, NotFiniteShows) {
  EXPECT_TRUE(std::isnan(gradient_scale(std::numeric_limits<double>::quiet_NaN(), 3, 1.0).norm));
  EXPECT_TRUE(std::isnan(gradient_scale(std::numeric_limits<double>::quiet_NaN(), 0, 1.0).norm));
}

}  // namespace
}  // namespace lamina
