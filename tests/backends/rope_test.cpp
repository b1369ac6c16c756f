#include "reference.hpp"

#include <numeric>

namespace lamina::test {
namespace {

class Rope : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(Rope, RotatesAndRotatesBack) {
  const std::int64_t head_dim = GetParam(), heads = 3, rows = 11;
  const Matrix x = random_matrix(rows, heads * head_dim, 1), table = rope_table(40, head_dim);
  std::vector<std::int32_t> positions(rows);
  std::iota(positions.begin(), positions.end(), 0);
  positions[3] = 39;
  positions[4] = 2;
  Placed px(x, {2 * head_dim + 1}), pt(table);
  ops_under_test().rope(px.view(), head_dim, pt.view(), positions, false);
  EXPECT_TRUE(close(px.matrix(), rope(x, head_dim, table, positions), 1e-6));
  ops_under_test().rope(px.view(), head_dim, pt.view(), positions, true);
  EXPECT_TRUE(close(px.matrix(), x, 1e-6));
  EXPECT_TRUE(px.surroundings_intact());
}

TEST_P(Rope, InverseIsTheGradient) {
  const std::int64_t head_dim = GetParam(), rows = 3;
  const Matrix x = random_matrix(rows, 2 * head_dim, 1), dy = random_matrix(rows, 2 * head_dim, 2),
               table = rope_table(9, head_dim);
  const std::vector<std::int32_t> positions = {1, 8, 5};
  Placed dx(dy), pt(table);
  ops_under_test().rope(dx.view(), head_dim, pt.view(), positions, true);
  const Function f = [&](const std::vector<Matrix>& m) { return rope(m[0], head_dim, table, positions); };
  EXPECT_TRUE(is_gradient(f, {x}, 0, dy, dx.matrix()));
}

INSTANTIATE_TEST_SUITE_P(HeadDims, Rope, ::testing::Values(1, 2, 5, 16, 22, 64, 128));

}  // namespace
}  // namespace lamina::test
