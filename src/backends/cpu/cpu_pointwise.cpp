// Activations, residual additions, copies and rotations.
#include "cpu_ops.hpp"
#include "fast_exp.hpp"
#include "lanes.hpp"
#include "pieces.hpp"

#include <algorithm>
#include <cstring>

namespace lamina::cpu {
namespace {

constexpr std::int64_t exp_cost = 8;  // an element with an exp against a plain one

// GELU in the tanh form is x * sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
constexpr float gelu_slope = 1.5957691216057308F;  // 2 sqrt(2/pi)
constexpr float gelu_cubic = 0.044715F;

Float8 gelu_sigmoid(Float8 x) { return sigmoid8(splat(gelu_slope) * x * fma8(splat(gelu_cubic) * x, x, splat(1.0F))); }

void rotate_row(float* x, std::int64_t heads, std::int64_t head_dim, const float* cosines, const float* sines,
                bool inverse) {
  const std::int64_t half = head_dim / 2;
  const Float8 sign = splat(inverse ? -1.0F : 1.0F);
  for (std::int64_t head = 0; head < heads; ++head, x += head_dim) {
    for_groups(half, [&](auto io, std::int64_t i) {
      const Float8 a = io.load(x + i);
      const Float8 b = io.load(x + half + i);
      const Float8 c = io.load(cosines + i);
      const Float8 s = io.load(sines + i) * sign;
      io.store(x + i, a * c - b * s);
      io.store(x + half + i, b * c + a * s);
    });
  }
}

}  // namespace

void CpuOps::do_rope(TensorView x, std::int64_t head_dim, ConstTensorView cos_sin,
                     std::span<const std::int32_t> positions, bool inverse) {
  parallel_ranges(threads_, x.rows, x.size() * 2, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const float* table = cos_sin.row(positions[static_cast<std::size_t>(t)]);
      rotate_row(x.row(t), x.cols / head_dim, head_dim, table, table + head_dim / 2, inverse);
    }
  });
}

void CpuOps::do_swiglu_forward(TensorView y, ConstTensorView gate_up) {
  parallel_ranges(threads_, y.rows, y.size() * exp_cost, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const float* gate = gate_up.row(t);
      const float* up = gate + y.cols;
      float* out = y.row(t);
      for_groups(y.cols, [&](auto io, std::int64_t i) {
        const Float8 g = io.load(gate + i);
        io.store(out + i, g * sigmoid8(g) * io.load(up + i));
      });
    }
  });
}

void CpuOps::do_swiglu_backward(TensorView d_gate_up, ConstTensorView dy, ConstTensorView gate_up) {
  parallel_ranges(threads_, dy.rows, dy.size() * exp_cost, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const float* gate = gate_up.row(t);
      const float* up = gate + dy.cols;
      const float* d_out = dy.row(t);
      float* d_gate = d_gate_up.row(t);
      float* d_up = d_gate + dy.cols;
      for_groups(dy.cols, [&](auto io, std::int64_t i) {
        const Float8 g = io.load(gate + i);
        const Float8 u = io.load(up + i);
        const Float8 d = io.load(d_out + i);
        const Float8 s = sigmoid8(g);
        const Float8 silu = g * s;
        io.store(d_up + i, d * silu);
        // silu' = s (1 + g (1 - s))
        io.store(d_gate + i, d * u * fma8(silu, splat(1.0F) - s, s));
      });
    }
  });
}

void CpuOps::do_gelu_forward(TensorView y, ConstTensorView x) {
  for_pieces(threads_, y.rows, y.cols, y.contiguous() && x.contiguous(), exp_cost,
             [&](std::int64_t row, std::int64_t col, std::int64_t n) {
               const float* in = x.row(row) + col;
               float* out = y.row(row) + col;
               for_groups(n, [&](auto io, std::int64_t i) {
                 const Float8 v = io.load(in + i);
                 io.store(out + i, v * gelu_sigmoid(v));
               });
             });
}

void CpuOps::do_gelu_backward(TensorView dx, ConstTensorView dy, ConstTensorView x) {
  const bool contiguous = dx.contiguous() && dy.contiguous() && x.contiguous();
  for_pieces(threads_, dx.rows, dx.cols, contiguous, exp_cost, [&](std::int64_t row, std::int64_t col, std::int64_t n) {
    const float* in = x.row(row) + col;
    const float* d_out = dy.row(row) + col;
    float* d_in = dx.row(row) + col;
    for_groups(n, [&](auto io, std::int64_t i) {
      const Float8 v = io.load(in + i);
      const Float8 s = gelu_sigmoid(v);
      const Float8 slope = splat(gelu_slope) * fma8(splat(3.0F * gelu_cubic) * v, v, splat(1.0F));
      io.store(d_in + i, io.load(d_out + i) * fma8(v * s * (splat(1.0F) - s), slope, s));
    });
  });
}

void CpuOps::do_add(TensorView y, ConstTensorView x) {
  for_pieces(threads_, y.rows, y.cols, y.contiguous() && x.contiguous(), 1,
             [&](std::int64_t row, std::int64_t col, std::int64_t n) {
               const float* in = x.row(row) + col;
               float* out = y.row(row) + col;
               for_groups(n, [&](auto io, std::int64_t i) { io.store(out + i, io.load(out + i) + io.load(in + i)); });
             });
}

void CpuOps::do_copy(TensorView y, ConstTensorView x) {
  for_pieces(
      threads_, y.rows, y.cols, y.contiguous() && x.contiguous(), 1,
      [&](std::int64_t row, std::int64_t col, std::int64_t n) { std::copy_n(x.row(row) + col, n, y.row(row) + col); });
}

void CpuOps::do_fill(TensorView y, float value) {
  for_pieces(threads_, y.rows, y.cols, y.contiguous(), 1,
             [&](std::int64_t row, std::int64_t col, std::int64_t n) { std::fill_n(y.row(row) + col, n, value); });
}

}  // namespace lamina::cpu
