#include "reference.hpp"

#include <cmath>

namespace lamina::test {
namespace {

struct Case {
  std::int64_t batch, q_len, kv_len, heads, kv_heads, head_dim, window;
  bool documents;  // first_visible set as for packed documents
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "batch " << c.batch << ", q " << c.q_len << ", kv " << c.kv_len << ", heads " << c.heads << "/"
             << c.kv_heads << ", head_dim " << c.head_dim << ", window " << c.window
             << (c.documents ? ", documents" : "");
}

// Documents of 1, 2, 3, ... tokens in every sequence.
std::vector<std::int32_t> document_starts(const Case& c) {
  std::vector<std::int32_t> starts;
  for (std::int64_t b = 0; b < c.batch; ++b) {
    std::int32_t start = 0, length = 1 + static_cast<std::int32_t>(b);
    for (std::int32_t t = 0; t < c.q_len; ++t) {
      if (t == start + length) start = t, ++length;
      starts.push_back(start);
    }
  }
  return starts;
}

class Attention : public ::testing::TestWithParam<Case> {
 protected:
  Case c = GetParam();
  std::vector<std::int32_t> starts = c.documents ? document_starts(c) : std::vector<std::int32_t>{};
  AttentionShape shape{
      c.batch,  c.q_len, c.kv_len, c.heads, c.kv_heads, c.head_dim, 1 / std::sqrt(static_cast<float>(c.head_dim)),
      c.window, starts};
  std::int64_t q_rows = c.batch * c.q_len, kv_rows = c.batch * c.kv_len;
  std::int64_t q_cols = c.heads * c.head_dim, kv_cols = c.kv_heads * c.head_dim;
  Matrix q = random_matrix(q_rows, q_cols, 1, 1.5);
  Matrix k = random_matrix(kv_rows, kv_cols, 2, 1.5);
  Matrix v = random_matrix(kv_rows, kv_cols, 3);
  Ops& ops = ops_under_test();
};

TEST_P(Attention, Forward) {
  Placed pq(q, {3}), pk(k, {5}), pv(v, {1}), o(q_rows, q_cols, {2}), lse(c.heads, q_rows, {1});
  ops.attention_forward(o.view(), lse.view(), pq.view(), pk.view(), pv.view(), shape);
  const AttentionResult want = attention(q, k, v, shape);
  EXPECT_TRUE(close(o.matrix(), want.o, 3e-6));
  EXPECT_TRUE(close(lse.matrix(), want.lse, 2e-6));
  EXPECT_TRUE(o.surroundings_intact());
  EXPECT_TRUE(lse.surroundings_intact());
}

TEST_P(Attention, Backward) {
  const Matrix d_out = random_matrix(q_rows, q_cols, 4);
  Placed pq(q, {3}), pk(k, {5}), pv(v, {1}), pd(d_out, {4}), o(q_rows, q_cols), lse(c.heads, q_rows),
      dq(q_rows, q_cols, {2}), dk(kv_rows, kv_cols, {6}), dv(kv_rows, kv_cols, {7});
  ops.attention_forward(o.view(), lse.view(), pq.view(), pk.view(), pv.view(), shape);
  ops.attention_backward(dq.view(), dk.view(), dv.view(), pd.view(), o.view(), lse.view(), pq.view(), pk.view(),
                         pv.view(), shape);
  const Function f = [&](const std::vector<Matrix>& m) { return attention(m[0], m[1], m[2], shape).o; };
  EXPECT_TRUE(is_gradient(f, {q, k, v}, 0, d_out, dq.matrix()));
  EXPECT_TRUE(is_gradient(f, {q, k, v}, 1, d_out, dk.matrix()));
  EXPECT_TRUE(is_gradient(f, {q, k, v}, 2, d_out, dv.matrix()));
  EXPECT_TRUE(dq.surroundings_intact());
  EXPECT_TRUE(dk.surroundings_intact());
  EXPECT_TRUE(dv.surroundings_intact());
}

INSTANTIATE_TEST_SUITE_P(Cases, Attention,
                         ::testing::Values(Case{1, 1, 1, 1, 1, 5, 0, false}, Case{2, 7, 7, 6, 3, 5, 0, false},
                                           Case{1, 64, 64, 2, 1, 16, 0, false}, Case{1, 65, 65, 2, 2, 8, 0, false},
                                           Case{1, 257, 257, 2, 1, 5, 0, false},   // a tile of one key
                                           Case{1, 330, 330, 1, 1, 4, 40, false},  // whole tiles out of sight
                                           Case{2, 70, 70, 4, 2, 3, 1, false},     // sees itself only
                                           Case{2, 90, 90, 2, 1, 8, 0, true}, Case{1, 300, 300, 1, 1, 4, 9, true},
                                           Case{1, 1, 300, 6, 3, 5, 0, false},  // one token against a cache
                                           Case{3, 1, 40, 4, 2, 16, 7, false}, Case{2, 5, 270, 2, 1, 8, 0, false}));

// Scores that would overflow exp without the running maximum, growing from tile to tile.
TEST(AttentionLimits, LargeScores) {
  const AttentionShape shape{1, 300, 300, 1, 1, 2, 1.0F, 0, {}};
  Matrix q(300, 2, 20), k(300, 2), v = random_matrix(300, 2, 3);
  for (std::int64_t i = 0; i < 300; ++i) k(i, 0) = static_cast<double>(i) / 8;
  Placed pq(q), pk(k), pv(v), o(300, 2), lse(1, 300);
  ops_under_test().attention_forward(o.view(), lse.view(), pq.view(), pk.view(), pv.view(), shape);
  const AttentionResult want = attention(q, k, v, shape);
  EXPECT_TRUE(close(o.matrix(), want.o, 1e-5));
  EXPECT_TRUE(close(lse.matrix(), want.lse, 1e-6));
}

// q, k, v and their gradients as columns of one buffer, as the model holds them.
TEST(AttentionLayout, FusedBuffer) {
  const std::int64_t rows = 2 * 70, heads = 4, kv_heads = 2, d = 5, width = (heads + 2 * kv_heads) * d;
  const AttentionShape shape{2, 70, 70, heads, kv_heads, d, 0.4F, 0, {}};
  Placed fused(random_matrix(rows, width, 1), {3}), gradient(rows, width, {3}),
      d_out(random_matrix(rows, heads * d, 2));
  const auto part = [&](Placed& p, std::int64_t col, std::int64_t n) { return p.view().col_range(col * d, n * d); };
  Placed o(rows, heads * d), lse(heads, rows);
  ops_under_test().attention_forward(o.view(), lse.view(), part(fused, 0, 4), part(fused, 4, 2), part(fused, 6, 2),
                                     shape);
  ops_under_test().attention_backward(part(gradient, 0, 4), part(gradient, 4, 2), part(gradient, 6, 2), d_out.view(),
                                      o.view(), lse.view(), part(fused, 0, 4), part(fused, 4, 2), part(fused, 6, 2),
                                      shape);
  const auto columns = [&](const Matrix& m, std::int64_t col, std::int64_t n) {
    Matrix out(m.rows, n * d);
    for (std::int64_t i = 0; i < m.rows; ++i) {
      for (std::int64_t j = 0; j < n * d; ++j) out(i, j) = m(i, col * d + j);
    }
    return out;
  };
  const Function f = [&](const std::vector<Matrix>& m) {
    return attention(columns(m[0], 0, 4), columns(m[0], 4, 2), columns(m[0], 6, 2), shape).o;
  };
  EXPECT_TRUE(close(o.matrix(), f({fused.matrix()}), 3e-6));
  EXPECT_TRUE(is_gradient(f, {fused.matrix()}, 0, d_out.matrix(), gradient.matrix()));
  EXPECT_TRUE(gradient.surroundings_intact());
}

}  // namespace
}  // namespace lamina::test
