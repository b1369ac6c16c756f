#include "ops_cases.hpp"

#include <cmath>

#include <lamina/base/random.hpp>

namespace lamina::bench {
namespace {

constexpr double bytes_of(std::int64_t elements) { return 4.0 * static_cast<double>(elements); }

}  // namespace

OpsCases::OpsCases(Backend& backend, const StepShape& shape) : backend_(backend), shape_(shape) {
  for (std::int64_t t = 0; t < shape.tokens(); ++t) {
    ids_.push_back(static_cast<std::int32_t>(permute_index(1, static_cast<std::uint64_t>(shape.vocabulary),
                                                           static_cast<std::uint64_t>(t % shape.vocabulary))));
    positions_.push_back(static_cast<std::int32_t>(t % shape.seq_len));
  }
  losses_.resize(static_cast<std::size_t>(shape.tokens()));
  const std::int64_t kv = shape.kv_heads * shape.head_dim(), t = shape.tokens();
  add_linear("qkv", t, shape.hidden, shape.hidden + 2 * kv, shape.layers);
  add_linear("attention out", t, shape.hidden, shape.hidden, shape.layers);
  add_linear("gate and up", t, shape.hidden, 2 * shape.mlp, shape.layers);
  add_linear("down", t, shape.mlp, shape.hidden, shape.layers);
  add_linear("head chunk", shape.loss_chunk, shape.hidden, shape.vocabulary, t / shape.loss_chunk);
  add_attention();
  add_pointwise();
  add_loss();
  add_shards();
}

TensorView OpsCases::matrix(std::int64_t rows, std::int64_t cols) {
  memory_.push_back(backend_.device->allocate_floats(static_cast<std::size_t>(rows * cols), "a benchmark operand"));
  TensorView view(memory_.back().floats(), rows, cols);
  // Cheap numbers in [-1, 1) that repeat late; the values do not matter as long as they are ordinary.
  std::uint32_t state = 12345;
  for (std::int64_t i = 0; i < view.size(); ++i) {
    state = state * 1664525U + 1013904223U;
    view.data[i] = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
  }
  return view;
}

void OpsCases::add_linear(const std::string& name, std::int64_t tokens, std::int64_t in, std::int64_t out,
                          std::int64_t per_step) {
  const TensorView x = matrix(tokens, in), y = matrix(tokens, out), w = matrix(out, in), dw = matrix(out, in),
                   dx = matrix(tokens, in);
  const double flops = 2.0 * static_cast<double>(tokens) * static_cast<double>(in) * static_cast<double>(out);
  const double bytes = bytes_of(tokens * in + tokens * out + in * out);
  Ops* ops = backend_.ops.get();
  cases_.push_back(
      {name + " forward", flops, bytes, per_step, [=] { ops->linear_forward(y, x, w, {}, WeightLayout::out_in); }});
  cases_.push_back({name + " input gradient", flops, bytes, per_step,
                    [=] { ops->linear_backward_input(dx, y, w, WeightLayout::out_in, Write::overwrite); }});
  cases_.push_back({name + " weight gradient", flops, bytes, per_step,
                    [=] { ops->linear_backward_weight(dw, y, x, WeightLayout::out_in, Write::overwrite); }});
}

void OpsCases::add_attention() {
  const std::int64_t d = shape_.head_dim(), q_cols = shape_.heads * d, kv_cols = shape_.kv_heads * d,
                     t = shape_.tokens();
  const TensorView qkv = matrix(t, q_cols + 2 * kv_cols), d_qkv = matrix(t, q_cols + 2 * kv_cols);
  const TensorView o = matrix(t, q_cols), d_out = matrix(t, q_cols), lse = matrix(shape_.heads, t);
  const AttentionShape s{shape_.sequences,
                         shape_.seq_len,
                         shape_.seq_len,
                         shape_.heads,
                         shape_.kv_heads,
                         d,
                         1 / std::sqrt(static_cast<float>(d)),
                         0,
                         {}};
  const auto part = [=](TensorView m, int which) {
    return m.col_range(which == 0 ? 0 : q_cols + (which - 1) * kv_cols, which == 0 ? q_cols : kv_cols);
  };
  // Two products forward, five backward, over half of all pairs.
  const double pairs =
      static_cast<double>(s.batch * s.heads) * 0.5 * static_cast<double>(s.q_len) * static_cast<double>(s.q_len + 1);
  const double product = 2.0 * pairs * static_cast<double>(d);
  Ops* ops = backend_.ops.get();
  cases_.push_back({"attention forward", 2 * product, bytes_of(o.size() + qkv.size()), shape_.layers,
                    [=] { ops->attention_forward(o, lse, part(qkv, 0), part(qkv, 1), part(qkv, 2), s); }});
  cases_.push_back({"attention backward", 5 * product, bytes_of(2 * o.size() + 2 * qkv.size()), shape_.layers, [=] {
                      ops->attention_backward(part(d_qkv, 0), part(d_qkv, 1), part(d_qkv, 2), d_out, o, lse,
                                              part(qkv, 0), part(qkv, 1), part(qkv, 2), s);
                    }});
}

void OpsCases::add_pointwise() {
  const std::int64_t t = shape_.tokens(), h = shape_.hidden, f = shape_.mlp;
  const TensorView gate_up = matrix(t, 2 * f), d_gate_up = matrix(t, 2 * f), act = matrix(t, f);
  const TensorView x = matrix(t, h), y = matrix(t, h), dx = matrix(t, h), w = matrix(1, h), dw = matrix(1, h),
                   rstd = matrix(1, t);
  const std::int64_t rotated = (shape_.heads + shape_.kv_heads) * shape_.head_dim();
  const TensorView qk = matrix(t, rotated), table = matrix(shape_.seq_len, shape_.head_dim());
  // A true rotation: a table of any numbers would shrink the operand to subnormal numbers, which are slow.
  for (std::int64_t row = 0; row < table.rows; ++row) {
    const std::int64_t half = table.cols / 2;
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(row) * std::pow(1e4, -static_cast<double>(i) / static_cast<double>(half));
      table.row(row)[i] = static_cast<float>(std::cos(angle));
      table.row(row)[half + i] = static_cast<float>(std::sin(angle));
    }
  }
  Ops* ops = backend_.ops.get();
  cases_.push_back(
      {"swiglu forward", 0, bytes_of(3 * t * f), shape_.layers, [=] { ops->swiglu_forward(act, gate_up); }});
  cases_.push_back({"swiglu backward", 0, bytes_of(5 * t * f), shape_.layers,
                    [=] { ops->swiglu_backward(d_gate_up, act, gate_up); }});
  cases_.push_back({"rms_norm forward", 0, bytes_of(2 * t * h), 2 * shape_.layers + 1,
                    [=] { ops->rms_norm_forward(y, rstd, x, w, 1e-5F); }});
  cases_.push_back({"rms_norm backward", 0, bytes_of(4 * t * h), 2 * shape_.layers + 1,
                    [=] { ops->rms_norm_backward(dx, dw, y, x, rstd, w, Write::add, Write::overwrite); }});
  cases_.push_back({"rope", 0, bytes_of(2 * t * rotated), 2 * shape_.layers,
                    [=, this] { ops->rope(qk, shape_.head_dim(), table, positions_, false); }});
  cases_.push_back({"add", 0, bytes_of(3 * t * h), 0, [=] { ops->add(y, x); }});
  cases_.push_back(
      {"gelu forward", 0, bytes_of(2 * t * f), 0, [=] { ops->gelu_forward(act, gate_up.col_range(0, f)); }});
}

void OpsCases::add_loss() {
  const std::int64_t t = shape_.tokens(), h = shape_.hidden, v = shape_.vocabulary, chunk = shape_.loss_chunk;
  const TensorView logits = matrix(chunk, v), table = matrix(v, h), x = matrix(t, h);
  const auto count = static_cast<std::size_t>(chunk);
  Ops* ops = backend_.ops.get();
  cases_.push_back({"cross entropy chunk", 0, bytes_of(2 * chunk * v), t / chunk, [=, this] {
                      ops->cross_entropy(logits, std::span<const std::int32_t>(ids_).first(count),
                                         std::span(losses_).first(count), true);
                    }});
  cases_.push_back(
      {"embedding forward", 0, bytes_of(2 * t * h), 1, [=, this] { ops->embedding_forward(x, table, ids_); }});
  cases_.push_back({"embedding backward", 0, bytes_of(2 * t * h + v * h), 1,
                    [=, this] { ops->embedding_backward(table, x, ids_, Write::overwrite); }});
}

void OpsCases::add_shards() {
  const std::int64_t kv = shape_.kv_heads * shape_.head_dim(), h = shape_.hidden;
  const std::int64_t parameters =
      shape_.layers * (h * (2 * h + 2 * kv) + 3 * h * shape_.mlp) + 2 * shape_.vocabulary * h;
  const TensorView p = matrix(1, parameters), m = matrix(1, parameters), v = matrix(1, parameters),
                   g = matrix(1, parameters);
  const auto whole = [=](TensorView x) { return std::span<float>(x.data, static_cast<std::size_t>(x.size())); };
  Ops* ops = backend_.ops.get();
  ops->fill(v, 0.5F);
  cases_.push_back({"adamw", 0, bytes_of(7 * parameters), 1, [=] {
                      ops->adamw(whole(p), whole(m), whole(v), whole(g), {1e-3, 0.9, 0.95, 1e-8, 0.1, 0.5, 0.5, 1});
                    }});
  cases_.push_back({"sum of squares", 0, bytes_of(parameters), 1, [=] {
                      ExactSum sum;
                      ops->add_sum_of_squares(sum, whole(g));
                    }});
  bandwidth_ = {"y += x", 0, bytes_of(3 * parameters), 0, [=] { ops->add(p, g); }};
}

}  // namespace lamina::bench
