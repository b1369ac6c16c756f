#include "reference.hpp"

namespace lamina::test {
namespace {

constexpr float eps = 1e-5F;

struct Shape {
  std::int64_t rows, cols;
};

class Norm : public ::testing::TestWithParam<Shape> {
 protected:
  std::int64_t rows = GetParam().rows, cols = GetParam().cols;
  Matrix x = random_matrix(rows, cols, 1);
  Matrix w = random_matrix(1, cols, 2);
  Matrix b = random_matrix(1, cols, 3);
  Matrix dy = random_matrix(rows, cols, 4);
  Ops& ops = ops_under_test();
};

TEST_P(Norm, RmsForward) {
  Placed px(x, {3}), pw(w), y(rows, cols, {5}), rstd(1, rows);
  ops.rms_norm_forward(y.view(), rstd.view(), px.view(), pw.view(), eps);
  EXPECT_TRUE(close(y.matrix(), rms_norm(x, w, static_cast<double>(eps)), 1e-6));
  EXPECT_TRUE(y.surroundings_intact());
}

TEST_P(Norm, RmsBackward) {
  Placed px(x, {3}), pw(w), pdy(dy, {1}), y(rows, cols), rstd(1, rows), dx(rows, cols, {7}), dw(1, cols);
  ops.rms_norm_forward(y.view(), rstd.view(), px.view(), pw.view(), eps);
  ops.rms_norm_backward(dx.view(), dw.view(), pdy.view(), px.view(), rstd.view(), pw.view(), Write::overwrite,
                        Write::overwrite);
  const Function f = [&](const std::vector<Matrix>& in) { return rms_norm(in[0], in[1], static_cast<double>(eps)); };
  EXPECT_TRUE(is_gradient(f, {x, w}, 0, dy, dx.matrix()));
  EXPECT_TRUE(is_gradient(f, {x, w}, 1, dy, dw.matrix()));
  EXPECT_TRUE(dx.surroundings_intact());

  const Matrix dx_once = dx.matrix(), dw_once = dw.matrix();
  ops.rms_norm_backward(dx.view(), dw.view(), pdy.view(), px.view(), rstd.view(), pw.view(), Write::add, Write::add);
  EXPECT_TRUE(close(dx.matrix(), plus(dx_once, dx_once), 1e-6));
  EXPECT_TRUE(close(dw.matrix(), plus(dw_once, dw_once), 1e-6));
  // In the place of dy.
  ops.rms_norm_backward(pdy.view(), dw.view(), pdy.view(), px.view(), rstd.view(), pw.view(), Write::overwrite,
                        Write::overwrite);
  EXPECT_TRUE(close(pdy.matrix(), dx_once, 0));
  EXPECT_TRUE(close(dw.matrix(), dw_once, 0));
}

TEST_P(Norm, LayerForward) {
  Placed px(x, {2}), pw(w), pb(b), y(rows, cols, {1}), mean(1, rows), rstd(1, rows);
  ops.layer_norm_forward(y.view(), mean.view(), rstd.view(), px.view(), pw.view(), pb.view(), eps);
  EXPECT_TRUE(close(y.matrix(), layer_norm(x, w, b, static_cast<double>(eps)), 2e-6));
  EXPECT_TRUE(y.surroundings_intact());
}

TEST_P(Norm, LayerBackward) {
  Placed px(x, {3}), pw(w), pb(b), pdy(dy, {1}), y(rows, cols), mean(1, rows), rstd(1, rows), dx(rows, cols, {7}),
      dw(1, cols), db(1, cols);
  ops.layer_norm_forward(y.view(), mean.view(), rstd.view(), px.view(), pw.view(), pb.view(), eps);
  const auto backward = [&](TensorView d_in, Write write) {
    ops.layer_norm_backward(d_in, dw.view(), db.view(), pdy.view(), px.view(), mean.view(), rstd.view(), pw.view(),
                            write, write);
  };
  backward(dx.view(), Write::overwrite);
  const Function f = [&](const std::vector<Matrix>& in) {
    return layer_norm(in[0], in[1], in[2], static_cast<double>(eps));
  };
  EXPECT_TRUE(is_gradient(f, {x, w, b}, 0, dy, dx.matrix()));
  EXPECT_TRUE(is_gradient(f, {x, w, b}, 1, dy, dw.matrix()));
  EXPECT_TRUE(is_gradient(f, {x, w, b}, 2, dy, db.matrix()));
  EXPECT_TRUE(dx.surroundings_intact());

  const Matrix dx_once = dx.matrix(), dw_once = dw.matrix(), db_once = db.matrix();
  backward(dx.view(), Write::add);
  EXPECT_TRUE(close(dx.matrix(), plus(dx_once, dx_once), 1e-6));
  EXPECT_TRUE(close(dw.matrix(), plus(dw_once, dw_once), 1e-6));
  EXPECT_TRUE(close(db.matrix(), plus(db_once, db_once), 1e-6));
  backward(pdy.view(), Write::overwrite);
  EXPECT_TRUE(close(pdy.matrix(), dx_once, 0));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Norm,
                         ::testing::Values(Shape{1, 5}, Shape{3, 8}, Shape{65, 24}, Shape{130, 37}, Shape{2, 259}));

// A constant offset of 1000 must not spoil the variance.
TEST(LayerNorm, SurvivesALargeMean) {
  Matrix x = random_matrix(4, 100, 9);
  for (double& v : x.values) v = static_cast<double>(static_cast<float>(v + 1000));
  const Matrix w(1, 100, 1), b(1, 100, 0);
  Placed px(x), pw(w), pb(b), y(4, 100), mean(1, 4), rstd(1, 4);
  ops_under_test().layer_norm_forward(y.view(), mean.view(), rstd.view(), px.view(), pw.view(), pb.view(), eps);
  EXPECT_TRUE(close(y.matrix(), layer_norm(x, w, b, static_cast<double>(eps)), 1e-4));
}

}  // namespace
}  // namespace lamina::test
