#include "reference.hpp"

#include <cmath>

namespace lamina::test {
namespace {

struct Shape {
  std::int64_t rows, cols;
};

class Activation : public ::testing::TestWithParam<Shape> {
 protected:
  std::int64_t rows = GetParam().rows, cols = GetParam().cols;
  Ops& ops = ops_under_test();
};

TEST_P(Activation, Swiglu) {
  const Matrix gate_up = random_matrix(rows, 2 * cols, 1, 3), dy = random_matrix(rows, cols, 2);
  Placed in(gate_up, {3}), pdy(dy, {1}), y(rows, cols, {2}), d_in(rows, 2 * cols, {5});
  ops.swiglu_forward(y.view(), in.view());
  EXPECT_TRUE(close(y.matrix(), swiglu(gate_up), 1e-6));
  EXPECT_TRUE(y.surroundings_intact());
  ops.swiglu_backward(d_in.view(), pdy.view(), in.view());
  const Function f = [](const std::vector<Matrix>& m) { return swiglu(m[0]); };
  EXPECT_TRUE(is_gradient(f, {gate_up}, 0, dy, d_in.matrix()));
  EXPECT_TRUE(d_in.surroundings_intact());
  ops.swiglu_backward(in.view(), pdy.view(), in.view());
  EXPECT_TRUE(same_bits(in.floats(), d_in.floats()));
}

TEST_P(Activation, Gelu) {
  const Matrix x = random_matrix(rows, cols, 1, 3), dy = random_matrix(rows, cols, 2);
  Placed in(x, {3}), pdy(dy, {1}), y(rows, cols, {2}), dx(rows, cols, {5});
  ops.gelu_forward(y.view(), in.view());
  EXPECT_TRUE(close(y.matrix(), gelu(x), 1e-6));
  EXPECT_TRUE(y.surroundings_intact());
  ops.gelu_backward(dx.view(), pdy.view(), in.view());
  const Function f = [](const std::vector<Matrix>& m) { return gelu(m[0]); };
  EXPECT_TRUE(is_gradient(f, {x}, 0, dy, dx.matrix()));
  EXPECT_TRUE(dx.surroundings_intact());
  ops.gelu_backward(pdy.view(), pdy.view(), in.view());
  EXPECT_TRUE(same_bits(pdy.floats(), dx.floats()));
}

TEST_P(Activation, AddCopyFill) {
  const Matrix a = random_matrix(rows, cols, 1), b = random_matrix(rows, cols, 2);
  for (const std::int64_t gap : {std::int64_t{0}, std::int64_t{3}}) {
    Placed pa(a, {gap}), pb(b, {2 * gap}), to(rows, cols, {gap});
    ops.copy(to.view(), pa.view());
    EXPECT_TRUE(same_bits(to.floats(), pa.floats()));
    ops.add(to.view(), pb.view());
    EXPECT_TRUE(close(to.matrix(), plus(a, b), 1e-7));
    ops.fill(to.view(), 2.5F);
    EXPECT_TRUE(close(to.matrix(), Matrix(rows, cols, 2.5), 0));
    EXPECT_TRUE(to.surroundings_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Activation,
                         ::testing::Values(Shape{1, 1}, Shape{1, 7}, Shape{3, 8}, Shape{5, 29}, Shape{67, 130}));

// Far from zero the formulas must not turn into 0 * inf or inf / inf.
TEST(ActivationLimits, StayFinite) {
  Matrix x(1, 6);
  x.values = {-1e4, -200, -90, 90, 200, 1e4};
  Placed px(x), y(1, 6), dy(Matrix(1, 6, 1)), dx(1, 6);
  ops_under_test().gelu_forward(y.view(), px.view());
  EXPECT_TRUE(close(y.matrix(), gelu(x), 1e-6));
  ops_under_test().gelu_backward(dx.view(), dy.view(), px.view());
  for (const float v : dx.floats()) EXPECT_TRUE(std::isfinite(v));
  Placed half(1, 3), d_gate_up(1, 6), dy3(Matrix(1, 3, 1));
  ops_under_test().swiglu_forward(half.view(), px.view());
  ops_under_test().swiglu_backward(d_gate_up.view(), dy3.view(), px.view());
  for (const float v : half.floats()) EXPECT_TRUE(std::isfinite(v));
  for (const float v : d_gate_up.floats()) EXPECT_TRUE(std::isfinite(v));
}

TEST(ActivationLimits, NanIsNotHidden) {
  Matrix x(1, 16);
  x.values[11] = std::nan("");
  Placed px(x), y(1, 16), half(1, 8);
  ops_under_test().gelu_forward(y.view(), px.view());
  EXPECT_TRUE(std::isnan(y.floats()[11]));
  ops_under_test().swiglu_forward(half.view(), px.view());
  EXPECT_TRUE(std::isnan(half.floats()[3]));
}

}  // namespace
}  // namespace lamina::test
