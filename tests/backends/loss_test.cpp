#include "reference.hpp"

#include <cmath>
#include <limits>

namespace lamina::test {
namespace {

struct Case {
  std::int64_t rows, vocabulary;
  double scale;
};

std::vector<std::int32_t> some_labels(const Case& c) {
  std::vector<std::int32_t> labels;
  for (std::int64_t t = 0; t < c.rows; ++t) {
    labels.push_back(t % 3 == 2 ? ignored_label : static_cast<std::int32_t>((t * 5 + 2) % c.vocabulary));
  }
  return labels;
}

class Loss : public ::testing::TestWithParam<Case> {
 protected:
  void check(const std::vector<std::int32_t>& labels) {
    const Case c = GetParam();
    const Matrix logits = random_matrix(c.rows, c.vocabulary, 1, c.scale);
    const Function f = [&](const std::vector<Matrix>& m) { return cross_entropy(m[0], labels); };
    Placed kept(logits, {3}), changed(logits, {3});
    std::vector<float> losses(labels.size(), std::nanf("")), again = losses;
    ops_under_test().cross_entropy(kept.view(), labels, losses, false);
    ops_under_test().cross_entropy(changed.view(), labels, again, true);
    EXPECT_TRUE(same_bits(losses, again));
    const Matrix want = f({logits});
    for (std::size_t t = 0; t < losses.size(); ++t) {
      EXPECT_NEAR(static_cast<double>(losses[t]), want.values[t], 2e-6 * (1 + want.values[t])) << t;
    }
    EXPECT_TRUE(close(kept.matrix(), logits, 0)) << "logits are only read without to_gradient";
    EXPECT_TRUE(is_gradient(f, {logits}, 0, Matrix(c.rows, 1, 1), changed.matrix()));
    EXPECT_TRUE(changed.surroundings_intact());
  }
};

TEST_P(Loss, SomeIgnored) { check(some_labels(GetParam())); }
TEST_P(Loss, AllIgnored) { check(std::vector<std::int32_t>(static_cast<std::size_t>(GetParam().rows), ignored_label)); }
TEST_P(Loss, NoneIgnored) { check(std::vector<std::int32_t>(static_cast<std::size_t>(GetParam().rows), 0)); }

INSTANTIATE_TEST_SUITE_P(Cases, Loss,
                         ::testing::Values(Case{1, 7, 1}, Case{5, 7, 10}, Case{4, 1, 1}, Case{6, 300, 3},
                                           Case{3, 2500, 1}));

TEST(LossLimits, MaskedLogitsCountAsZero) {
  Matrix logits(1, 9, 1.0);
  for (std::int64_t i = 1; i < 8; ++i) logits(0, i) = -std::numeric_limits<double>::infinity();
  Placed p(logits);
  std::vector<float> losses(1);
  ops_under_test().cross_entropy(p.view(), std::vector<std::int32_t>{0}, losses, true);
  EXPECT_NEAR(static_cast<double>(losses[0]), std::log(2.0), 1e-6);
  EXPECT_EQ(p.floats()[4], 0.0F);
}

TEST(LossLimits, LargeLogitsDoNotOverflow) {
  Matrix logits(1, 3);
  logits.values = {1e5, 1e5, -1e5};
  Placed p(logits);
  std::vector<float> losses(1);
  ops_under_test().cross_entropy(p.view(), std::vector<std::int32_t>{1}, losses, true);
  EXPECT_NEAR(static_cast<double>(losses[0]), std::log(2.0), 1e-6);
}

TEST(LossLimits, NanIsNotHidden) {
  for (const std::int64_t bad : {0, 3, 12}) {
    Matrix logits(1, 13, 1.0);
    logits(0, bad) = std::nan("");
    Placed p(logits);
    std::vector<float> losses(1);
    ops_under_test().cross_entropy(p.view(), std::vector<std::int32_t>{5}, losses, true);
    EXPECT_TRUE(std::isnan(losses[0])) << bad;
  }
}

}  // namespace
}  // namespace lamina::test
