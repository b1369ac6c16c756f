#include "reference.hpp"

namespace lamina::test {
namespace {

const std::vector<std::int32_t> ids = {3, 0, 6, 3, 3, 1, 6};

TEST(Embedding, ForwardCopiesOrAdds) {
  const Matrix table = random_matrix(7, 13, 1);
  Placed pt(table, {3}), y(7, 13, {2});
  ops_under_test().embedding_forward(y.view(), pt.view(), ids);
  Matrix want(7, 13);
  for (std::int64_t t = 0; t < 7; ++t) {
    for (std::int64_t i = 0; i < 13; ++i) want(t, i) = table(ids[static_cast<std::size_t>(t)], i);
  }
  EXPECT_TRUE(close(y.matrix(), want, 0));
  ops_under_test().embedding_forward(y.view(), pt.view(), ids, Write::add);
  EXPECT_TRUE(close(y.matrix(), plus(want, want), 0));
  EXPECT_TRUE(y.surroundings_intact());
}

TEST(Embedding, BackwardSumsRepeatedTokens) {
  const Matrix dy = random_matrix(7, 13, 1);
  Placed pdy(dy, {4}), d_table(9, 13, {1});
  ops_under_test().embedding_backward(d_table.view(), pdy.view(), ids, Write::overwrite);
  Matrix want(9, 13);
  for (std::int64_t t = 0; t < 7; ++t) {
    for (std::int64_t i = 0; i < 13; ++i) want(ids[static_cast<std::size_t>(t)], i) += dy(t, i);
  }
  EXPECT_TRUE(close(d_table.matrix(), want, 1e-6));
  ops_under_test().embedding_backward(d_table.view(), pdy.view(), ids, Write::add);
  EXPECT_TRUE(close(d_table.matrix(), plus(want, want), 1e-6));
  EXPECT_TRUE(d_table.surroundings_intact());
}

// Sums in token order: 1 + 2^-24 - 1 is 0 in that order and 2^-24 in others.
TEST(Embedding, BackwardKeepsTokenOrder) {
  Matrix dy(3, 1);
  dy.values = {1, 0x1p-24, -1};
  Placed pdy(dy), d_table(1, 1);
  ops_under_test().embedding_backward(d_table.view(), pdy.view(), std::vector<std::int32_t>{0, 0, 0}, Write::overwrite);
  EXPECT_EQ(d_table.floats()[0], 0.0F);
}

}  // namespace
}  // namespace lamina::test
