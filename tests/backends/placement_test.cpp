// Results must not depend on where operands lie: the same bits at every alignment and stride.
#include "reference.hpp"

#include <numeric>

namespace lamina::test {
namespace {

// Runs `compute` with every layout and expects one result.
template <typename Compute>
void expect_same_everywhere(Compute&& compute) {
  const std::vector<float> first = compute(Layout{0, 0});
  for (const Layout layout :
       {Layout{0, 1}, Layout{0, 3}, Layout{0, 8}, Layout{0, 13}, Layout{5, 0}, Layout{5, 2}, Layout{16, 7}}) {
    EXPECT_TRUE(same_bits(compute(layout), first)) << "gap " << layout.gap << ", shift " << layout.shift;
  }
}

void append(std::vector<float>& all, const Placed& p) {
  const std::vector<float> values = p.floats();
  all.insert(all.end(), values.begin(), values.end());
}

TEST(Placement, Linear) {
  struct Sizes {
    std::int64_t tokens, in, out;
  };
  for (const Sizes s :
       {Sizes{1, 100, 37}, Sizes{3, 50, 70}, Sizes{40, 33, 65}, Sizes{130, 200, 96}, Sizes{257, 129, 140}}) {
    expect_same_everywhere([&](Layout at) {
      Placed x(random_matrix(s.tokens, s.in, 1), at), w(random_matrix(s.out, s.in, 2), at),
          b(random_matrix(1, s.out, 3), at), dy(random_matrix(s.tokens, s.out, 4), at), y(s.tokens, s.out, at),
          dx(s.tokens, s.in, at), dw(s.out, s.in, at), db(1, s.out, at);
      Ops& ops = ops_under_test();
      ops.linear_forward(y.view(), x.view(), w.view(), b.view(), WeightLayout::out_in);
      ops.linear_backward_input(dx.view(), dy.view(), w.view(), WeightLayout::out_in, Write::overwrite);
      ops.linear_backward_weight(dw.view(), dy.view(), x.view(), WeightLayout::out_in, Write::overwrite);
      ops.linear_backward_bias(db.view(), dy.view(), Write::overwrite);
      std::vector<float> all;
      for (const Placed* p : {&y, &dx, &dw, &db}) append(all, *p);
      return all;
    });
  }
}

TEST(Placement, Norms) {
  expect_same_everywhere([](Layout at) {
    const std::int64_t rows = 70, cols = 45;
    Placed x(random_matrix(rows, cols, 1), at), w(random_matrix(1, cols, 2), at), b(random_matrix(1, cols, 3), at),
        dy(random_matrix(rows, cols, 4), at), y(rows, cols, at), y2(rows, cols, at), mean(1, rows, at),
        rstd(1, rows, at), dx(rows, cols, at), dx2(rows, cols, at), dw(1, cols, at), dw2(1, cols, at), db(1, cols, at);
    Ops& ops = ops_under_test();
    ops.rms_norm_forward(y.view(), rstd.view(), x.view(), w.view(), 1e-6F);
    ops.rms_norm_backward(dx.view(), dw.view(), dy.view(), x.view(), rstd.view(), w.view(), Write::overwrite,
                          Write::overwrite);
    ops.layer_norm_forward(y2.view(), mean.view(), rstd.view(), x.view(), w.view(), b.view(), 1e-6F);
    ops.layer_norm_backward(dx2.view(), dw2.view(), db.view(), dy.view(), x.view(), mean.view(), rstd.view(), w.view(),
                            Write::overwrite, Write::overwrite);
    std::vector<float> all;
    for (const Placed* p : {&y, &dx, &dw, &y2, &dx2, &dw2, &db, &mean, &rstd}) append(all, *p);
    return all;
  });
}

TEST(Placement, Attention) {
  for (const std::int64_t q_len : {1, 70, 300}) {
    expect_same_everywhere([&](Layout at) {
      const std::int64_t heads = 2, kv_heads = 1, d = 12, kv_len = 300;
      const AttentionShape shape{1, q_len, kv_len, heads, kv_heads, d, 0.3F, 0, {}};
      Placed q(random_matrix(q_len, heads * d, 1), at), k(random_matrix(kv_len, kv_heads * d, 2), at),
          v(random_matrix(kv_len, kv_heads * d, 3), at), d_out(random_matrix(q_len, heads * d, 4), at),
          o(q_len, heads * d, at), lse(heads, q_len, at), dq(q_len, heads * d, at), dk(kv_len, kv_heads * d, at),
          dv(kv_len, kv_heads * d, at);
      Ops& ops = ops_under_test();
      ops.attention_forward(o.view(), lse.view(), q.view(), k.view(), v.view(), shape);
      ops.attention_backward(dq.view(), dk.view(), dv.view(), d_out.view(), o.view(), lse.view(), q.view(), k.view(),
                             v.view(), shape);
      std::vector<float> all;
      for (const Placed* p : {&o, &lse, &dq, &dk, &dv}) append(all, *p);
      return all;
    });
  }
}

TEST(Placement, PointwiseAndTokens) {
  expect_same_everywhere([](Layout at) {
    const std::int64_t rows = 9, cols = 45;
    Placed x(random_matrix(rows, 2 * cols, 1), at), half(rows, cols, at), d_half(random_matrix(rows, cols, 2), at),
        dx(rows, 2 * cols, at), g(rows, 2 * cols, at), dg(rows, 2 * cols, at), table(rope_table(rows, 30), at),
        d_table(7, cols, at);
    std::vector<std::int32_t> positions(rows), ids = {1, 6, 6, 0, 1, 2, 3, 4, 1};
    std::iota(positions.begin(), positions.end(), 0);
    Ops& ops = ops_under_test();
    ops.swiglu_forward(half.view(), x.view());
    ops.swiglu_backward(dx.view(), d_half.view(), x.view());
    ops.gelu_forward(g.view(), x.view());
    ops.gelu_backward(dg.view(), dx.view(), x.view());
    ops.rope(x.view(), 30, table.view(), positions, false);
    ops.embedding_backward(d_table.view(), half.view(), ids, Write::overwrite);
    std::vector<float> all(rows);
    ops.cross_entropy(d_half.view(), ids, all, true);
    for (const Placed* p : {&half, &dx, &g, &dg, &x, &d_table, &d_half}) append(all, *p);
    return all;
  });
}

}  // namespace
}  // namespace lamina::test
