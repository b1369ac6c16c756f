// Attention forward: stacks of query rows against tiles of keys with an online softmax (Dao et al., FlashAttention,
// 2022). Keys and values are used in place through their strides.
#include "attention_tile.hpp"
#include "cpu_ops.hpp"
#include "gemm.hpp"
#include "parallel.hpp"
#include "scratch.hpp"

#include <cmath>
#include <limits>

namespace lamina::cpu {
namespace {

constexpr float lowest = -std::numeric_limits<float>::infinity();

// Keys and values of one sequence and head.
struct Memory {
  const float* k;
  const float* v;
  std::int64_t k_stride, v_stride;
};

// A stack while it is computed. q is scaled; o is not yet divided by `sum`.
struct Stack {
  std::int64_t rows, head_dim;
  float* q;     // [rows, head_dim]
  float* o;     // [rows, head_dim]
  float* s;     // [rows, tile_stride]
  float* most;  // [rows] running maximum
  float* sum;   // [rows] running sum of the exponentials
};

std::int64_t stack_floats(std::int64_t rows, std::int64_t head_dim) { return rows * (2 * head_dim + tile_stride + 2); }

Stack make_stack(float* memory, std::int64_t rows, std::int64_t head_dim) {
  Stack a{rows, head_dim, memory, nullptr, nullptr, nullptr, nullptr};
  a.o = a.q + rows * head_dim;
  a.s = a.o + rows * head_dim;
  a.most = a.s + rows * tile_stride;
  a.sum = a.most + rows;
  std::fill_n(a.most, rows, lowest);
  std::fill_n(a.sum, rows, 0.0F);
  return a;
}

void scores(const Stack& a, const Memory& m, const KeyTile& tile) {
  const float* keys = m.k + tile.first * m.k_stride;
  if (a.rows > few_rows) {
    gemm(a.rows, tile.cols, a.head_dim, 1.0F, {a.q, a.head_dim}, {keys, m.k_stride, true}, 0.0F, a.s, tile_stride, 1);
    return;
  }
  for (std::int64_t j = 0; j < tile.cols; ++j) {
    for (std::int64_t r = 0; r < a.rows; ++r) {
      a.s[r * tile_stride + j] = dot(a.q + r * a.head_dim, keys + j * m.k_stride, a.head_dim);
    }
  }
}

// o += the sum of p[j] * row j of `values`: four groups of elements stay in registers over all rows.
void add_weighted_rows(float* o, const float* p, const float* values, std::int64_t stride, std::int64_t rows,
                       std::int64_t n) {
  constexpr std::int64_t step = 4 * width;
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    Float8 s0 = load8(o + i), s1 = load8(o + i + width), s2 = load8(o + i + 2 * width), s3 = load8(o + i + 3 * width);
    for (std::int64_t j = 0; j < rows; ++j) {
      const float* value = values + j * stride + i;
      const Float8 weight = splat(p[j]);
      s0 = fma8(weight, load8(value), s0);
      s1 = fma8(weight, load8(value + width), s1);
      s2 = fma8(weight, load8(value + 2 * width), s2);
      s3 = fma8(weight, load8(value + 3 * width), s3);
    }
    store8(o + i, s0);
    store8(o + i + width, s1);
    store8(o + i + 2 * width, s2);
    store8(o + i + 3 * width, s3);
  }
  for_groups(n - i, [&](auto io, std::int64_t k) {
    Float8 sum = io.load(o + i + k);
    for (std::int64_t j = 0; j < rows; ++j) sum = fma8(splat(p[j]), io.load(values + j * stride + i + k), sum);
    io.store(o + i + k, sum);
  });
}

// o (+)= p v.
void mix(const Stack& a, const Memory& m, const KeyTile& tile, bool first_tile) {
  const float* values = m.v + tile.first * m.v_stride;
  if (a.rows > few_rows) {
    gemm(a.rows, a.head_dim, tile.cols, 1.0F, {a.s, tile_stride}, {values, m.v_stride}, first_tile ? 0.0F : 1.0F, a.o,
         a.head_dim, 1);
    return;
  }
  for (std::int64_t r = 0; r < a.rows; ++r) {
    float* o = a.o + r * a.head_dim;
    if (first_tile) std::fill_n(o, a.head_dim, 0.0F);
    add_weighted_rows(o, a.s + r * tile_stride, values, m.v_stride, tile.cols, a.head_dim);
  }
}

// Scores to unnormalised probabilities in place, zero where the row does not see the key. Returns the factor for what
// the row has summed so far.
float exponentials(float* s, std::int64_t cols, std::pair<std::int64_t, std::int64_t> visible, float& most,
                   float& sum) {
  const auto [from, to] = visible;
  std::fill(s, s + from, 0.0F);
  std::fill(s + to, s + cols, 0.0F);
  if (from == to) return 1.0F;
  float* seen = s + from;
  const std::int64_t n = to - from;
  Float8 peak = splat(most);
  for_groups(n, [&](auto io, std::int64_t i) { peak = max8(peak, io.load(seen + i, lowest)); });
  const float new_most = max_of_lanes(peak);
  const float added = sum_over(n, [&](auto io, std::int64_t i) {
    const Float8 e = exp8(io.load(seen + i, lowest) - splat(new_most));
    io.store(seen + i, e);
    return e;
  });
  const float factor = most == lowest ? 0.0F : exp1(most - new_most);
  sum = sum * factor + added;
  most = new_most;
  return factor;
}

void forward_stack(const Stack& a, const Memory& m, const QueryBlock& block) {
  for_tiles(block, [&](const KeyTile& tile) {
    const bool first_tile = tile.first == block.first_key;
    scores(a, m, tile);
    for (std::int64_t r = 0; r < a.rows; ++r) {
      const float factor =
          exponentials(a.s + r * tile_stride, tile.cols, tile.visible(block, r % block.rows), a.most[r], a.sum[r]);
      float* o = a.o + r * a.head_dim;
      if (!first_tile && factor != 1.0F) scaled_copy(o, o, a.head_dim, factor);
    }
    mix(a, m, tile, first_tile);
  });
}

}  // namespace

void CpuOps::do_attention_forward(TensorView o, TensorView lse, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                                  const AttentionShape& shape) {
  const std::int64_t d = shape.head_dim;
  const std::int64_t work = shape.batch * shape.heads * products_per_head(shape) / 4;
  parallel_items(threads_, shape.batch * shape.kv_heads, work, [&](std::int64_t item) {
    static thread_local Scratch scratch;
    const std::int64_t sequence = item / shape.kv_heads;
    const std::int64_t kv_head = item % shape.kv_heads;
    const std::int64_t kv_row = sequence * shape.kv_len;
    const Memory memory{k.row(kv_row) + kv_head * d, v.row(kv_row) + kv_head * d, k.stride, v.stride};
    for_stacks(shape, kv_head, [&](const HeadStack& stack) {
      const std::int64_t block_rows = rows_of_block(stack.heads, shape.q_len);
      for (std::int64_t row = 0; row < shape.q_len; row += block_rows) {
        const QueryBlock block(shape, sequence, row, block_rows);
        const std::int64_t rows = stack.heads * block.rows;
        const Stack a = make_stack(scratch.floats(stack_floats(rows, d)), rows, d);
        const std::int64_t at = sequence * shape.q_len + row;
        for_stacked_rows(stack, q, at, block.rows, [&](std::int64_t i, std::int64_t, const float* source) {
          scaled_copy(a.q + i * d, source, d, shape.scale);
        });
        forward_stack(a, memory, block);
        for_stacked_rows(stack, o, at, block.rows, [&](std::int64_t i, std::int64_t r, float* target) {
          scaled_copy(target, a.o + i * d, d, 1.0F / a.sum[i]);
          lse.row(stack.first_head + i / block.rows)[at + r] = a.most[i] + std::log(a.sum[i]);
        });
      }
    });
  });
}

}  // namespace lamina::cpu
