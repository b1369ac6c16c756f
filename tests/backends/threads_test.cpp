// One thread against two: everything but matrix products gives the same bits, and those the same numbers.
#include "reference.hpp"

#include <numeric>

#if defined(__SANITIZE_THREAD__)
#define LAMINA_SKIP_OPENMP() GTEST_SKIP() << "ThreadSanitizer does not know the synchronisation of GNU OpenMP"
#else
#define LAMINA_SKIP_OPENMP() static_cast<void>(0)
#endif

namespace lamina::test {
namespace {

TEST(Threads, ElementwiseAndNormsGiveTheSameBits) {
  LAMINA_SKIP_OPENMP();
  const std::int64_t rows = 300, cols = 514;
  const auto run = [&](std::int64_t threads) {
    Ops& ops = ops_under_test(threads);
    Placed x(random_matrix(rows, cols, 1)), w(random_matrix(1, cols, 2)), b(random_matrix(1, cols, 3)),
        dy(random_matrix(rows, cols, 4)), y(rows, cols), mean(1, rows), rstd(1, rows), dx(rows, cols), dw(1, cols),
        db(1, cols), dw2(1, cols), half(rows, cols / 2), d_gate(rows, cols), g(rows, cols), dg(rows, cols),
        column_sums(1, cols), d_table(11, cols);
    ops.rms_norm_forward(y.view(), rstd.view(), x.view(), w.view(), 1e-6F);
    ops.rms_norm_backward(dx.view(), dw.view(), dy.view(), x.view(), rstd.view(), w.view(), Write::overwrite,
                          Write::overwrite);
    ops.layer_norm_forward(y.view(), mean.view(), rstd.view(), x.view(), w.view(), b.view(), 1e-6F);
    ops.layer_norm_backward(dx.view(), dw2.view(), db.view(), dy.view(), x.view(), mean.view(), rstd.view(), w.view(),
                            Write::add, Write::overwrite);
    ops.swiglu_forward(half.view(), x.view());
    ops.swiglu_backward(d_gate.view(), half.view(), x.view());
    ops.gelu_forward(g.view(), x.view());
    ops.gelu_backward(dg.view(), dy.view(), x.view());
    ops.add(g.view(), dg.view());
    ops.linear_backward_bias(column_sums.view(), dy.view(), Write::overwrite);
    std::vector<std::int32_t> ids(rows);
    for (std::size_t t = 0; t < ids.size(); ++t) ids[t] = static_cast<std::int32_t>(t * t % 11);
    ops.embedding_backward(d_table.view(), dy.view(), ids, Write::overwrite);
    std::vector<float> all(rows);
    ops.cross_entropy(dy.view(), ids, all, true);
    for (const Placed* p : {&y, &mean, &rstd, &dx, &dw, &dw2, &db, &half, &d_gate, &g, &column_sums, &d_table, &dy}) {
      const std::vector<float> values = p->floats();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const std::vector<float> one = run(1);
  EXPECT_TRUE(same_bits(run(2), one));
  EXPECT_TRUE(same_bits(run(3), one));
}

TEST(Threads, ShardsGiveTheSameBits) {
  LAMINA_SKIP_OPENMP();
  const std::int64_t n = 200'003;
  const auto run = [&](std::int64_t threads) {
    const auto values = [&](std::uint64_t seed) {
      const Matrix r = random_matrix(1, n, seed);
      return std::vector<float>(r.values.begin(), r.values.end());
    };
    std::vector<float> p = values(1), m = values(2), v(static_cast<std::size_t>(n), 0.5F);
    const std::vector<float> g = values(3);
    ops_under_test(threads).adamw(p, m, v, g, {1e-3, 0.9, 0.95, 1e-8, 0.1, 0.5, 0.3, 0.9});
    ExactSum sum;
    ops_under_test(threads).add_sum_of_squares(sum, p);
    p.insert(p.end(), m.begin(), m.end());
    p.insert(p.end(), v.begin(), v.end());
    return std::pair(p, sum.value());
  };
  const auto one = run(1), two = run(2);
  EXPECT_TRUE(same_bits(one.first, two.first));
  EXPECT_EQ(one.second, two.second);
}

TEST(Threads, AttentionGivesTheSameBits) {
  LAMINA_SKIP_OPENMP();
  const std::int64_t rows = 2 * 130, heads = 4, kv_heads = 2, d = 16;
  const AttentionShape shape{2, 130, 130, heads, kv_heads, d, 0.25F, 0, {}};
  const auto run = [&](std::int64_t threads) {
    Placed q(random_matrix(rows, heads * d, 1)), k(random_matrix(rows, kv_heads * d, 2)),
        v(random_matrix(rows, kv_heads * d, 3)), d_out(random_matrix(rows, heads * d, 4)), o(rows, heads * d),
        lse(heads, rows), dq(rows, heads * d), dk(rows, kv_heads * d), dv(rows, kv_heads * d);
    Ops& ops = ops_under_test(threads);
    ops.attention_forward(o.view(), lse.view(), q.view(), k.view(), v.view(), shape);
    ops.attention_backward(dq.view(), dk.view(), dv.view(), d_out.view(), o.view(), lse.view(), q.view(), k.view(),
                           v.view(), shape);
    std::vector<float> all;
    for (const Placed* p : {&o, &lse, &dq, &dk, &dv}) {
      const std::vector<float> values = p->floats();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  EXPECT_TRUE(same_bits(run(1), run(2)));
}

TEST(Threads, MatrixProductsAreCloseAndRepeatable) {
  LAMINA_SKIP_OPENMP();
  const std::int64_t tokens = 256, in = 192, out = 320;
  const Matrix x = random_matrix(tokens, in, 1), w = random_matrix(out, in, 2);
  const auto run = [&](std::int64_t threads) {
    Placed px(x), pw(w), y(tokens, out);
    ops_under_test(threads).linear_forward(y.view(), px.view(), pw.view(), {}, WeightLayout::out_in);
    return y;
  };
  const Placed two = run(2);
  EXPECT_TRUE(close(two.matrix(), run(1).matrix(), 1e-5));
  EXPECT_TRUE(same_bits(two.floats(), run(2).floats()));
}

}  // namespace
}  // namespace lamina::test
