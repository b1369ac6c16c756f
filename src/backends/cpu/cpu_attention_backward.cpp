// Attention backward: recomputes the probabilities of a tile from the kept log-sum-exp (Dao et al., FlashAttention,
// 2022). A thread owns a key/value head of a sequence, so that dk and dv are summed in a fixed order without atomics.
#include "attention_tile.hpp"
#include "cpu_ops.hpp"
#include "gemm.hpp"
#include "parallel.hpp"
#include "scratch.hpp"

namespace lamina::cpu {
namespace {

// Keys and values of one sequence and head, and their gradients.
struct Memory {
  ConstTensorView k, v;
  TensorView dk, dv;
};

// A stack while it is computed.
struct Stack {
  std::int64_t rows, head_dim;
  float* q;      // [rows, head_dim] scaled
  float* d_out;  // [rows, head_dim]
  float* dq;     // [rows, head_dim]
  float* p;      // [rows, tile_stride] probabilities, then the gradient of the scores
  float* dp;     // [rows, tile_stride] gradient of the probabilities
  float* lse;    // [rows]
  float* mean;   // [rows] of the gradient of the probabilities, weighted by them
};

std::int64_t stack_floats(std::int64_t rows, std::int64_t head_dim) {
  return rows * (3 * head_dim + 2 * tile_stride + 2);
}

Stack make_stack(float* memory, std::int64_t rows, std::int64_t head_dim) {
  Stack a{rows, head_dim, memory, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  a.d_out = a.q + rows * head_dim;
  a.dq = a.d_out + rows * head_dim;
  a.p = a.dq + rows * head_dim;
  a.dp = a.p + rows * tile_stride;
  a.lse = a.dp + rows * tile_stride;
  a.mean = a.lse + rows;
  return a;
}

// Scores to probabilities, zero where the row does not see the key.
void probabilities(float* p, std::int64_t cols, std::pair<std::int64_t, std::int64_t> visible, float lse) {
  const auto [from, to] = visible;
  float* seen = p + from;
  std::fill(p, seen, 0.0F);
  for_groups(to - from, [&](auto io, std::int64_t i) { io.store(seen + i, exp8(io.load(seen + i) - splat(lse))); });
  std::fill(p + to, p + cols, 0.0F);
}

// p becomes p * (dp - mean), the gradient of the scores.
void score_gradients(float* p, const float* dp, std::int64_t cols, float mean) {
  for_groups(cols, [&](auto io, std::int64_t i) { io.store(p + i, io.load(p + i) * (io.load(dp + i) - splat(mean))); });
}

void backward_tile(const Stack& a, const Memory& m, const QueryBlock& block, const KeyTile& tile, float scale) {
  const std::int64_t d = a.head_dim;
  const float* k = m.k.row(tile.first);
  const Factor p{a.p, tile_stride}, p_transposed{a.p, tile_stride, true};
  gemm(a.rows, tile.cols, d, 1.0F, {a.q, d}, {k, m.k.stride, true}, 0.0F, a.p, tile_stride, 1);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    probabilities(a.p + r * tile_stride, tile.cols, tile.visible(block, r % block.rows), a.lse[r]);
  }
  gemm(tile.cols, d, a.rows, 1.0F, p_transposed, {a.d_out, d}, 1.0F, m.dv.row(tile.first), m.dv.stride, 1);
  gemm(a.rows, tile.cols, d, 1.0F, {a.d_out, d}, {m.v.row(tile.first), m.v.stride, true}, 0.0F, a.dp, tile_stride, 1);
  for (std::int64_t r = 0; r < a.rows; ++r)
    score_gradients(a.p + r * tile_stride, a.dp + r * tile_stride, tile.cols, a.mean[r]);
  const float beta = tile.first == block.first_key ? 0.0F : 1.0F;
  gemm(a.rows, d, tile.cols, scale, p, {k, m.k.stride}, beta, a.dq, d, 1);
  gemm(tile.cols, d, a.rows, 1.0F, p_transposed, {a.q, d}, 1.0F, m.dk.row(tile.first), m.dk.stride, 1);
}

void clear(const TensorView& m) {
  for (std::int64_t i = 0; i < m.rows; ++i) std::fill_n(m.row(i), m.cols, 0.0F);
}

struct Operands {
  TensorView dq;
  ConstTensorView d_out, o, lse, q;
  const AttentionShape& shape;
};

void backward_block(const Operands& x, const Memory& m, const HeadStack& stack, const QueryBlock& block,
                    std::int64_t at, Scratch& scratch) {
  const std::int64_t d = x.shape.head_dim;
  const std::int64_t rows = stack.heads * block.rows;
  const Stack a = make_stack(scratch.floats(stack_floats(rows, d)), rows, d);
  for_stacked_rows(stack, x.q, at, block.rows, [&](std::int64_t i, std::int64_t, const float* source) {
    scaled_copy(a.q + i * d, source, d, x.shape.scale);
  });
  for_stacked_rows(stack, x.d_out, at, block.rows,
                   [&](std::int64_t i, std::int64_t, const float* source) { std::copy_n(source, d, a.d_out + i * d); });
  for_stacked_rows(stack, x.o, at, block.rows, [&](std::int64_t i, std::int64_t r, const float* o) {
    a.mean[i] = dot(a.d_out + i * d, o, d);
    a.lse[i] = x.lse.row(stack.first_head + i / block.rows)[at + r];
  });
  for_tiles(block, [&](const KeyTile& tile) { backward_tile(a, m, block, tile, x.shape.scale); });
  for_stacked_rows(stack, x.dq, at, block.rows,
                   [&](std::int64_t i, std::int64_t, float* target) { std::copy_n(a.dq + i * d, d, target); });
}

}  // namespace

void CpuOps::do_attention_backward(TensorView dq, TensorView dk, TensorView dv, ConstTensorView d_out,
                                   ConstTensorView o, ConstTensorView lse, ConstTensorView q, ConstTensorView k,
                                   ConstTensorView v, const AttentionShape& shape) {
  const std::int64_t work = shape.batch * shape.heads * products_per_head(shape);
  const Operands operands{dq, d_out, o, lse, q, shape};
  parallel_items(threads_, shape.batch * shape.kv_heads, work, [&](std::int64_t item) {
    static thread_local Scratch scratch;
    const std::int64_t sequence = item / shape.kv_heads;
    const std::int64_t kv_head = item % shape.kv_heads;
    const auto part = [&](auto view) {
      return view.row_range(sequence * shape.kv_len, shape.kv_len).col_range(kv_head * shape.head_dim, shape.head_dim);
    };
    const Memory memory{part(k), part(v), part(dk), part(dv)};
    clear(memory.dk);
    clear(memory.dv);
    for_stacks(shape, kv_head, [&](const HeadStack& stack) {
      const std::int64_t block_rows = rows_of_block(stack.heads, shape.q_len);
      for (std::int64_t row = 0; row < shape.q_len; row += block_rows) {
        backward_block(operands, memory, stack, QueryBlock(shape, sequence, row, block_rows),
                       sequence * shape.q_len + row, scratch);
      }
    });
  });
}

}  // namespace lamina::cpu
