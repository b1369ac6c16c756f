#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lamina::test {
namespace {

struct State {
  std::vector<double> p, m, v;
};

// torch.optim.AdamW's single-tensor path, in double.
void adamw(State& s, const std::vector<double>& grad, int t, const AdamWStep& o) {
  for (std::size_t i = 0; i < s.p.size(); ++i) {
    const double g = grad[i] * o.grad_scale;
    s.p[i] *= 1 - o.lr * o.weight_decay;
    s.m[i] += (g - s.m[i]) * (1 - o.beta1);
    s.v[i] = s.v[i] * o.beta2 + (1 - o.beta2) * g * g;
    const double denominator = std::sqrt(s.v[i]) / std::sqrt(1 - std::pow(o.beta2, t)) + o.eps;
    s.p[i] -= o.lr / (1 - std::pow(o.beta1, t)) * s.m[i] / denominator;
  }
}

Matrix row(const std::vector<double>& values) {
  Matrix m(1, static_cast<std::int64_t>(values.size()));
  m.values = values;
  return m;
}

class AdamW : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(AdamW, MatchesTorchFormula) {
  const auto n = static_cast<std::size_t>(GetParam());
  AdamWStep step{3e-3, 0.9, 0.999, 1e-8, 0.1, 1, 1, 0.25};
  State want{random_matrix(1, GetParam(), 1).values, std::vector<double>(n), std::vector<double>(n)};
  std::vector<float> p(want.p.begin(), want.p.end()), m(n), v(n);
  for (int t = 1; t <= 10; ++t) {
    const std::vector<double> grad = random_matrix(1, GetParam(), 100 + static_cast<std::uint64_t>(t)).values;
    const std::vector<float> g(grad.begin(), grad.end());
    step.bias1 = 1 - std::pow(step.beta1, t);
    step.bias2 = 1 - std::pow(step.beta2, t);
    ops_under_test().adamw(p, m, v, g, step);
    adamw(want, grad, t, step);
  }
  EXPECT_TRUE(close(row({p.begin(), p.end()}), row(want.p), 1e-6));
  EXPECT_TRUE(close(row({m.begin(), m.end()}), row(want.m), 3e-6));
  EXPECT_TRUE(close(row({v.begin(), v.end()}), row(want.v), 1e-6));
}

INSTANTIATE_TEST_SUITE_P(Lengths, AdamW, ::testing::Values(1, 7, 8, 33, 5000));

// A shard boundary anywhere must not change a bit.
TEST(AdamWSharding, CutsDoNotMatter) {
  constexpr std::size_t n = 103;
  const auto values = [](std::uint64_t seed) {
    const Matrix r = random_matrix(1, n, seed);
    return std::vector<float>(r.values.begin(), r.values.end());
  };
  const AdamWStep step{1e-3, 0.9, 0.999, 1e-8, 0.01, 0.1, 0.001, 0.7};
  std::vector<float> p = values(1), m = values(2), v(n, 0.25F), p2 = p, m2 = m, v2 = v;
  const std::vector<float> g = values(3);
  ops_under_test().adamw(p, m, v, g, step);
  for (std::size_t first : {std::size_t{0}, std::size_t{37}, std::size_t{50}}) {
    const std::size_t last = first == 0 ? 37 : first == 37 ? 50 : n;
    const auto part = [&](std::vector<float>& x) { return std::span(x).subspan(first, last - first); };
    ops_under_test().adamw(part(p2), part(m2), part(v2), std::span<const float>(g).subspan(first, last - first), step);
  }
  EXPECT_TRUE(same_bits(p, p2));
  EXPECT_TRUE(same_bits(m, m2));
  EXPECT_TRUE(same_bits(v, v2));
}

TEST(SumOfSquares, IsExactWhateverTheOrderAndTheCuts) {
  const std::size_t n = 300'077;  // more than the bins take at once
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = std::ldexp(static_cast<float>(i * 2654435761u % 16777216u) - 8388608.0F, static_cast<int>(i % 200) - 130);
  }
  ExactSum want;
  for (const float v : x) want.add(static_cast<double>(v) * static_cast<double>(v));  // exact in double
  ExactSum whole;
  ops_under_test().add_sum_of_squares(whole, x);
  EXPECT_EQ(whole.value(), want.value());
  ExactSum parts;
  for (const auto& [first, last] : {std::pair<std::size_t, std::size_t>{70'001, n}, {0, 3}, {3, 70'001}}) {
    ops_under_test(2).add_sum_of_squares(parts, std::span(x).subspan(first, last - first));
  }
  EXPECT_EQ(parts.value(), whole.value());
  std::ranges::reverse(x);
  ExactSum reversed;
  ops_under_test().add_sum_of_squares(reversed, x);
  EXPECT_EQ(reversed.value(), whole.value());
}

TEST(SumOfSquares, CountsTheSmallestAndLargestNumbers) {
  for (const float value : {std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(),
                            std::numeric_limits<float>::max(), -1.5F, 0.0F}) {
    ExactSum sum;
    ops_under_test().add_sum_of_squares(sum, std::vector<float>{value});
    EXPECT_EQ(sum.value(), static_cast<double>(value) * static_cast<double>(value));
  }
}

TEST(SumOfSquares, SeesValuesThatAreNotFinite) {
  std::vector<float> x(2000, 1.0F);
  x[1500] = INFINITY;
  ExactSum sum;
  ops_under_test().add_sum_of_squares(sum, x);
  EXPECT_FALSE(std::isfinite(sum.value()));
}

}  // namespace
}  // namespace lamina::test
