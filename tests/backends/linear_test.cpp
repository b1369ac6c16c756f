#include "reference.hpp"

#include <numeric>

namespace lamina::test {
namespace {

constexpr WeightLayout layouts[] = {WeightLayout::out_in, WeightLayout::in_out};

struct Sizes {
  std::int64_t tokens, in, out;
};
// One token and few tokens take another path than many; 7 and 257 leave incomplete vectors.
constexpr Sizes sizes[] = {{1, 7, 3}, {1, 64, 40}, {3, 33, 17}, {5, 7, 9}, {12, 20, 257}, {257, 12, 8}, {33, 1, 1}};

Matrix weight(const Sizes& s, WeightLayout layout) {
  return layout == WeightLayout::out_in ? random_matrix(s.out, s.in, 2) : random_matrix(s.in, s.out, 2);
}

class Linear : public ::testing::TestWithParam<std::tuple<Sizes, WeightLayout>> {
 protected:
  Sizes s = std::get<0>(GetParam());
  WeightLayout layout = std::get<1>(GetParam());
  Matrix x = random_matrix(s.tokens, s.in, 1);
  Matrix w = weight(s, layout);
  Matrix bias = random_matrix(1, s.out, 3);
  Matrix dy = random_matrix(s.tokens, s.out, 4);
  Ops& ops = ops_under_test();
};

TEST_P(Linear, ForwardOverwritesAndAdds) {
  const Matrix product = linear(x, w, layout);
  Placed px(x, {3}), pw(w, {5}), pb(bias), y(s.tokens, s.out, {2});
  ops.linear_forward(y.view(), px.view(), pw.view(), {}, layout);
  EXPECT_TRUE(close(y.matrix(), product, 1e-5));
  ops.linear_forward(y.view(), px.view(), pw.view(), pb.view(), layout, Write::add);
  EXPECT_TRUE(close(y.matrix(), add_row(plus(product, product), bias), 1e-5));
  EXPECT_TRUE(y.surroundings_intact());
}

TEST_P(Linear, ForwardWithBiasIgnoresOldContent) {
  Placed px(x), pw(w), pb(bias), y(s.tokens, s.out);
  ops.linear_forward(y.view(), px.view(), pw.view(), pb.view(), layout);
  EXPECT_TRUE(close(y.matrix(), add_row(linear(x, w, layout), bias), 1e-5));
}

TEST_P(Linear, BackwardMatchesFiniteDifferences) {
  Placed px(x, {1}), pw(w, {4}), pdy(dy, {3}), dx(s.tokens, s.in, {2}), dw(w.rows, w.cols), db(1, s.out);
  ops.linear_backward_input(dx.view(), pdy.view(), pw.view(), layout, Write::overwrite);
  ops.linear_backward_weight(dw.view(), pdy.view(), px.view(), layout, Write::overwrite);
  ops.linear_backward_bias(db.view(), pdy.view(), Write::overwrite);
  const Function f = [&](const std::vector<Matrix>& in) { return add_row(linear(in[0], in[1], layout), in[2]); };
  EXPECT_TRUE(is_gradient(f, {x, w, bias}, 0, dy, dx.matrix()));
  EXPECT_TRUE(is_gradient(f, {x, w, bias}, 1, dy, dw.matrix()));
  EXPECT_TRUE(is_gradient(f, {x, w, bias}, 2, dy, db.matrix()));
  EXPECT_TRUE(dx.surroundings_intact());
}

TEST_P(Linear, BackwardAdds) {
  Placed px(x), pw(w), pdy(dy), dx(s.tokens, s.in), dw(w.rows, w.cols), db(1, s.out);
  for (const Write write : {Write::overwrite, Write::add}) {
    ops.linear_backward_input(dx.view(), pdy.view(), pw.view(), layout, write);
    ops.linear_backward_weight(dw.view(), pdy.view(), px.view(), layout, write);
    ops.linear_backward_bias(db.view(), pdy.view(), write);
  }
  Placed dx1(s.tokens, s.in), dw1(w.rows, w.cols), db1(1, s.out);
  ops.linear_backward_input(dx1.view(), pdy.view(), pw.view(), layout, Write::overwrite);
  ops.linear_backward_weight(dw1.view(), pdy.view(), px.view(), layout, Write::overwrite);
  ops.linear_backward_bias(db1.view(), pdy.view(), Write::overwrite);
  EXPECT_TRUE(close(dx.matrix(), plus(dx1.matrix(), dx1.matrix()), 1e-5));
  EXPECT_TRUE(close(dw.matrix(), plus(dw1.matrix(), dw1.matrix()), 1e-5));
  EXPECT_TRUE(close(db.matrix(), plus(db1.matrix(), db1.matrix()), 1e-5));
}

INSTANTIATE_TEST_SUITE_P(Sizes, Linear, ::testing::Combine(::testing::ValuesIn(sizes), ::testing::ValuesIn(layouts)));

TEST(LinearNoTokens, GradientIsZero) {
  Placed dw(3, 4), db(1, 3);
  ops_under_test().linear_backward_weight(dw.view(), {nullptr, 0, 3}, {nullptr, 0, 4}, WeightLayout::out_in,
                                          Write::overwrite);
  ops_under_test().linear_backward_bias(db.view(), {nullptr, 0, 3}, Write::overwrite);
  EXPECT_TRUE(close(dw.matrix(), Matrix(3, 4), 0));
  EXPECT_TRUE(close(db.matrix(), Matrix(1, 3), 0));
}

}  // namespace
}  // namespace lamina::test
