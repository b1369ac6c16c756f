// Every public operation refuses operands that do not fit, before the backend sees them.
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/ops/ops.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A backend that only counts.
class CountingOps final : public Ops {
 public:
  int calls = 0;
  [[nodiscard]] std::string_view name() const override { return "counting"; }

 protected:
  using V = TensorView;
  using C = ConstTensorView;
  using Ids = std::span<const std::int32_t>;
  void do_linear_forward(V, C, C, C, WeightLayout, Write) override { ++calls; }
  void do_linear_backward_input(V, C, C, WeightLayout, Write) override { ++calls; }
  void do_linear_backward_weight(V, C, C, WeightLayout, Write) override { ++calls; }
  void do_linear_backward_bias(V, C, Write) override { ++calls; }
  void do_rms_norm_forward(V, V, C, C, float) override { ++calls; }
  void do_rms_norm_backward(V, V, C, C, C, C, Write, Write) override { ++calls; }
  void do_layer_norm_forward(V, V, V, C, C, C, float) override { ++calls; }
  void do_layer_norm_backward(V, V, V, C, C, C, C, C, Write, Write) override { ++calls; }
  void do_rope(V, std::int64_t, C, Ids, bool) override { ++calls; }
  void do_attention_forward(V, V, C, C, C, const AttentionShape&) override { ++calls; }
  void do_attention_backward(V, V, V, C, C, C, C, C, C, const AttentionShape&) override { ++calls; }
  void do_swiglu_forward(V, C) override { ++calls; }
  void do_swiglu_backward(V, C, C) override { ++calls; }
  void do_gelu_forward(V, C) override { ++calls; }
  void do_gelu_backward(V, C, C) override { ++calls; }
  void do_add(V, C) override { ++calls; }
  void do_copy(V, C) override { ++calls; }
  void do_fill(V, float) override { ++calls; }
  void do_embedding_forward(V, C, Ids, Write) override { ++calls; }
  void do_embedding_backward(V, C, Ids, Write) override { ++calls; }
  void do_cross_entropy(V, Ids, std::span<float>, bool, const LossTerms&) override { ++calls; }
  void do_adamw(std::span<float>, std::span<float>, std::span<float>, std::span<const float>,
                const AdamWStep&) override {
    ++calls;
  }
  void do_adam(std::span<float>, std::span<float>, std::span<float>, std::span<const float>,
               const AdamWStep&) override {
    ++calls;
  }
  void do_sgd(std::span<float>, std::span<float>, std::span<const float>, const SgdStep&) override { ++calls; }
  void do_lion(std::span<float>, std::span<float>, std::span<const float>, const LionStep&) override { ++calls; }
  void do_add_sum_of_squares(ExactSum&, std::span<const float>) override { ++calls; }
};

class ShapeChecks : public ::testing::Test {
 protected:
  CountingOps ops;
  std::vector<float> memory = std::vector<float>(4096);
  std::size_t used = 0;

  // A matrix with memory of its own.
  TensorView m(std::int64_t rows, std::int64_t cols) {
    float* data = memory.data() + used;
    used += static_cast<std::size_t>(rows * cols);
    return {data, rows, cols};
  }
  std::string refusal(const std::function<void()>& action) {
    const int before = ops.calls;
    try {
      action();
    } catch (const InternalError& error) {
      EXPECT_EQ(ops.calls, before);
      return error.what();
    }
    return "nothing was refused";
  }
};

TEST_F(ShapeChecks, LinearNamesTheOperandsAndTheirShapes) {
  const TensorView y = m(3, 5), x = m(3, 4), w = m(5, 4), t = m(4, 5);
  ops.linear_forward(y, x, w, {}, WeightLayout::out_in);
  ops.linear_forward(y, x, t, {}, WeightLayout::in_out);
  EXPECT_EQ(ops.calls, 2);
  EXPECT_THAT(refusal([&] { ops.linear_forward(y, x, t, {}, WeightLayout::out_in); }),
              AllOf(HasSubstr("linear_forward"), HasSubstr("w [4, 5]"), HasSubstr("x [3, 4]"), HasSubstr("y [3, 5]")));
  EXPECT_THAT(refusal([&] { ops.linear_forward(y, x, w, m(1, 4), WeightLayout::out_in); }), HasSubstr("bias [1, 4]"));
  EXPECT_THAT(refusal([&] { ops.linear_backward_input(m(2, 4), y, w, WeightLayout::out_in, Write::add); }),
              HasSubstr("dx [2, 4]"));
  EXPECT_THAT(refusal([&] { ops.linear_backward_weight(m(4, 4), y, x, WeightLayout::out_in, Write::add); }),
              HasSubstr("dw [4, 4]"));
  EXPECT_THAT(refusal([&] { ops.linear_backward_bias(m(5, 1), y, Write::add); }), HasSubstr("dbias [5, 1]"));
}

TEST_F(ShapeChecks, BadViews) {
  const TensorView x = m(3, 4);
  EXPECT_THAT(refusal([&] { ops.fill({x.data, 3, 4, 3}, 0); }), HasSubstr("stride 3"));
  EXPECT_THAT(refusal([&] { ops.fill({nullptr, 3, 4}, 0); }), HasSubstr("no memory"));
  EXPECT_THAT(refusal([&] { ops.fill({x.data, -1, 4}, 0); }), HasSubstr("[-1, 4]"));
  ops.fill({nullptr, 0, 4}, 0);
  EXPECT_EQ(ops.calls, 1);
}

TEST_F(ShapeChecks, OutputsThatShareMemoryWithInputs) {
  const TensorView x = m(6, 8);
  EXPECT_THAT(refusal([&] { ops.gelu_forward(x, x); }), HasSubstr("share memory"));
  EXPECT_THAT(refusal([&] { ops.add(x.row_range(1, 3), x.row_range(0, 3)); }), HasSubstr("share memory"));
  EXPECT_THAT(refusal([&] { ops.copy(x.col_range(0, 5), x.col_range(4, 4).col_range(0, 4)); }),
              HasSubstr("same shape"));
  EXPECT_THAT(refusal([&] { ops.copy(x.col_range(0, 4), x.col_range(3, 4)); }), HasSubstr("share memory"));
  ops.copy(x.col_range(0, 4), x.col_range(4, 4));
  ops.copy(x.row_range(0, 3), x.row_range(3, 3));
  // Allowed in place.
  const TensorView dy = m(6, 8);
  ops.gelu_backward(dy, dy, x);
  ops.swiglu_backward(x, m(6, 4), x);
  ops.rms_norm_backward(dy, m(1, 8), dy, x, m(1, 6), m(1, 8), Write::overwrite, Write::add);
  EXPECT_EQ(ops.calls, 5);
  EXPECT_THAT(refusal([&] { ops.rms_norm_backward(dy, m(1, 8), dy, x, m(1, 6), m(1, 8), Write::add, Write::add); }),
              HasSubstr("share memory"));
}

TEST_F(ShapeChecks, Norms) {
  const TensorView x = m(3, 8), y = m(3, 8), w = m(1, 8), r = m(1, 3);
  ops.rms_norm_forward(y, r, x, w, 1e-5F);
  EXPECT_EQ(ops.calls, 1);
  EXPECT_THAT(refusal([&] { ops.rms_norm_forward(y, m(1, 4), x, w, 0); }), HasSubstr("rstd [1, 4]"));
  EXPECT_THAT(refusal([&] { ops.rms_norm_forward(m(3, 7), r, x, w, 0); }), HasSubstr("[3, 7]"));
  EXPECT_THAT(refusal([&] { ops.rms_norm_backward(m(3, 8), m(1, 7), y, x, r, w, Write::add, Write::add); }),
              HasSubstr("dw [1, 7]"));
  EXPECT_THAT(refusal([&] { ops.layer_norm_forward(y, m(1, 2), r, x, w, w, 0); }), HasSubstr("mean [1, 2]"));
  EXPECT_THAT(refusal([&] { ops.layer_norm_backward(m(3, 8), w, m(1, 9), y, x, r, r, w, Write::add, Write::add); }),
              HasSubstr("db [1, 9]"));
}

TEST_F(ShapeChecks, Rope) {
  const TensorView x = m(2, 12), table = m(5, 4);
  const std::vector<std::int32_t> positions = {0, 4}, beyond = {0, 5}, negative = {-1, 0};
  ops.rope(x, 4, table, positions, false);
  ops.rope(m(2, 10), 5, table, positions, false);
  EXPECT_EQ(ops.calls, 2);
  EXPECT_THAT(refusal([&] { ops.rope(x, 5, table, positions, false); }), HasSubstr("whole heads of 5"));
  EXPECT_THAT(refusal([&] { ops.rope(x, 6, table, positions, false); }), HasSubstr("cos_sin [5, 4]"));
  EXPECT_THAT(refusal([&] { ops.rope(x, 4, table, std::vector<std::int32_t>{0}, false); }), HasSubstr("positions [1]"));
  EXPECT_THAT(refusal([&] { ops.rope(x, 4, table, beyond, false); }), HasSubstr("positions[1] = 5"));
  EXPECT_THAT(refusal([&] { ops.rope(x, 4, table, negative, false); }), HasSubstr("positions[0] = -1"));
}

TEST_F(ShapeChecks, Attention) {
  const AttentionShape good{2, 3, 3, 4, 2, 5, 0.4F, 0, {}};
  const TensorView q = m(6, 20), k = m(6, 10), v = m(6, 10), o = m(6, 20), lse = m(4, 6);
  const auto forward = [&](const AttentionShape& s) { ops.attention_forward(o, lse, q, k, v, s); };
  forward(good);
  ops.attention_backward(m(6, 20), m(6, 10), m(6, 10), m(6, 20), o, lse, q, k, v, good);
  EXPECT_EQ(ops.calls, 2);
  const auto with = [&](auto change) {
    AttentionShape s = good;
    change(s);
    return refusal([&] { forward(s); });
  };
  EXPECT_THAT(with([](AttentionShape& s) { s.kv_heads = 3; }), HasSubstr("multiple of 3 kv_heads"));
  EXPECT_THAT(with([](AttentionShape& s) { s.kv_heads = 0; }), HasSubstr("kv_heads"));
  EXPECT_THAT(with([](AttentionShape& s) { s.q_len = 4; }), HasSubstr("kv_len >= q_len"));
  EXPECT_THAT(with([](AttentionShape& s) { s.head_dim = 4; }), HasSubstr("q [6, 20] must be [6, 16]"));
  EXPECT_THAT(with([](AttentionShape& s) { s.window = -1; }), HasSubstr("window -1"));
  EXPECT_THAT(with([](AttentionShape& s) { s.scale = 0; }), HasSubstr("scale"));
  const std::vector<std::int32_t> late = {0, 1, 3, 0, 0, 0}, few = {0, 0};
  EXPECT_THAT(with([&](AttentionShape& s) { s.first_visible = late; }), HasSubstr("first_visible[2] = 3"));
  EXPECT_THAT(with([&](AttentionShape& s) { s.first_visible = few; }), HasSubstr("first_visible [2]"));
  EXPECT_THAT(refusal([&] { ops.attention_forward(o, m(6, 4), q, k, v, good); }),
              HasSubstr("lse [6, 4] must be [4, 6]"));
  EXPECT_THAT(refusal([&] { ops.attention_forward(q, lse, q, k, v, good); }), HasSubstr("share memory"));
  EXPECT_THAT(refusal([&] { ops.attention_backward(m(6, 20), k, m(6, 10), m(6, 20), o, lse, q, k, v, good); }),
              HasSubstr("dk [6, 10] and k [6, 10] share memory"));
}

TEST_F(ShapeChecks, Activations) {
  EXPECT_THAT(refusal([&] { ops.swiglu_forward(m(2, 4), m(2, 4)); }), HasSubstr("gate_up [2, 4]"));
  EXPECT_THAT(refusal([&] { ops.swiglu_backward(m(2, 4), m(2, 4), m(2, 8)); }), HasSubstr("d_gate_up [2, 4]"));
  EXPECT_THAT(refusal([&] { ops.gelu_backward(m(2, 4), m(2, 5), m(2, 4)); }), HasSubstr("dy [2, 5]"));
  EXPECT_THAT(refusal([&] { ops.add(m(2, 4), m(4, 2)); }), AllOf(HasSubstr("y [2, 4]"), HasSubstr("x [4, 2]")));
}

TEST_F(ShapeChecks, Tokens) {
  const TensorView y = m(2, 4), table = m(7, 4), logits = m(2, 7);
  const std::vector<std::int32_t> ids = {0, 6}, beyond = {7, 0}, negative = {0, -1}, labels = {ignored_label, 6},
                                  bad = {-1, 6};
  std::vector<float> losses(2), short_losses(1);
  ops.embedding_forward(y, table, ids);
  ops.embedding_backward(table, y, ids, Write::add);
  ops.cross_entropy(logits, labels, losses, true);
  EXPECT_EQ(ops.calls, 3);
  EXPECT_THAT(refusal([&] { ops.embedding_forward(y, table, beyond); }), HasSubstr("ids[0] = 7"));
  EXPECT_THAT(refusal([&] { ops.embedding_backward(table, y, negative, Write::add); }), HasSubstr("ids[1] = -1"));
  EXPECT_THAT(refusal([&] { ops.embedding_forward(m(2, 3), table, ids); }), HasSubstr("y [2, 3]"));
  EXPECT_THAT(refusal([&] { ops.embedding_forward(m(3, 4), table, ids); }), HasSubstr("ids [2]"));
  EXPECT_THAT(refusal([&] { ops.cross_entropy(logits, bad, losses, true); }), HasSubstr("labels[0] = -1"));
  EXPECT_THAT(refusal([&] { ops.cross_entropy(logits, beyond, losses, true); }), HasSubstr("labels[0] = 7"));
  EXPECT_THAT(refusal([&] { ops.cross_entropy(logits, labels, short_losses, true); }), HasSubstr("losses [1]"));
  ops.cross_entropy(logits, labels, losses, true, {.label_smoothing = 0.5, .z_loss = 1});
  for (const double wrong : {-0.1, 1.0, std::nan("")}) {
    EXPECT_THAT(refusal([&] { ops.cross_entropy(logits, labels, losses, true, {.label_smoothing = wrong}); }),
                HasSubstr("label smoothing"));
  }
  for (const double wrong : {-0.1, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_THAT(refusal([&] { ops.cross_entropy(logits, labels, losses, true, {.z_loss = wrong}); }),
                HasSubstr("z-loss"));
  }
}

TEST_F(ShapeChecks, AdamW) {
  std::vector<float> a(4), b(4), c(4), d(4), wrong(3);
  ops.adamw(a, b, c, d, {});
  EXPECT_EQ(ops.calls, 1);
  EXPECT_THAT(refusal([&] { ops.adamw(a, b, c, wrong, {}); }), HasSubstr("grad [3]"));
  EXPECT_THAT(refusal([&] { ops.adamw(a, b, c, d, {0, 0, 0, 0, 0, 0, 1, 1}); }), HasSubstr("positive"));
}

TEST_F(ShapeChecks, OtherOptimizers) {
  std::vector<float> a(4), b(4), c(4), d(4), wrong(3);
  ops.adam(a, b, c, d, {});
  ops.sgd(a, {}, d, {});
  ops.sgd(a, b, d, {0.1, 0.9, 0, true, 1});
  ops.lion(a, b, d, {});
  EXPECT_EQ(ops.calls, 4);
  EXPECT_THAT(refusal([&] { ops.adam(a, wrong, c, d, {}); }), HasSubstr("exp_avg [3]"));
  EXPECT_THAT(refusal([&] { ops.sgd(a, b, d, {}); }), HasSubstr("momentum_buffer [4]"));
  EXPECT_THAT(refusal([&] { ops.sgd(a, {}, d, {0.1, 0.9, 0, false, 1}); }), HasSubstr("momentum_buffer [0]"));
  EXPECT_THAT(refusal([&] { ops.sgd(a, {}, d, {0.1, 0, 0, true, 1}); }), HasSubstr("nesterov"));
  EXPECT_THAT(refusal([&] { ops.lion(a, b, wrong, {}); }), HasSubstr("grad [3]"));
  EXPECT_EQ(ops.calls, 4);
}

}  // namespace
}  // namespace lamina
