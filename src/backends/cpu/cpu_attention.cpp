// Attention forward: blocks of query rows against tiles of keys with an online softmax (Dao et al., FlashAttention,
// 2022). Operands are used in place through their strides.
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

// One block of one head: where its operands begin.
struct Head {
  const float* q;  // first row of the block
  const float* k;  // first key of the sequence
  const float* v;
  float* o;
  float* lse;
  std::int64_t q_stride, k_stride, v_stride, o_stride;
  std::int64_t head_dim;
  float scale;
};

// Running maximum and sum of the softmax of each row.
struct Softmax {
  std::array<float, block_rows> most, sum;
};

void scores(const Head& h, std::int64_t rows, const KeyTile& tile, float* s) {
  const float* keys = h.k + tile.first * h.k_stride;
  if (rows > 1) {
    gemm(rows, tile.cols, h.head_dim, h.scale, {h.q, h.q_stride}, {keys, h.k_stride, true}, 0.0F, s, tile_stride, 1);
    return;
  }
  for (std::int64_t j = 0; j < tile.cols; ++j) s[j] = h.scale * dot(h.q, keys + j * h.k_stride, h.head_dim);
}

// o (+)= p v.
void mix(const Head& h, std::int64_t rows, const KeyTile& tile, const float* p, bool first_tile) {
  const float* values = h.v + tile.first * h.v_stride;
  if (rows > 1) {
    gemm(rows, h.head_dim, tile.cols, 1.0F, {p, tile_stride}, {values, h.v_stride}, first_tile ? 0.0F : 1.0F, h.o,
         h.o_stride, 1);
    return;
  }
  for_groups(h.head_dim, [&](auto io, std::int64_t i) {
    Float8 sum = first_tile ? Float8{} : io.load(h.o + i);
    for (std::int64_t j = 0; j < tile.cols; ++j) sum = fma8(splat(p[j]), io.load(values + j * h.v_stride + i), sum);
    io.store(h.o + i, sum);
  });
}

// Scores to unnormalised probabilities in place, zero where the row does not see the key. Returns the factor for what
// the row has summed so far.
float exponentials(float* s, std::int64_t cols, std::pair<std::int64_t, std::int64_t> visible, float& most,
                   float& sum) {
  const auto [from, to] = visible;
  if (from >= to) {
    std::fill_n(s, cols, 0.0F);
    return 1.0F;
  }
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
  std::fill(s, seen, 0.0F);
  std::fill(seen + n, s + cols, 0.0F);
  const float factor = most == lowest ? 0.0F : exp1(most - new_most);
  sum = sum * factor + added;
  most = new_most;
  return factor;
}

void forward_block(const Head& h, const QueryBlock& block, float* s) {
  Softmax state;
  state.most.fill(lowest);
  state.sum.fill(0.0F);
  for_tiles(block, [&](const KeyTile& tile) {
    const bool first_tile = tile.first == block.first_key;
    scores(h, block.rows, tile, s);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const float factor =
          exponentials(s + r * tile_stride, tile.cols, tile.visible(block, r), state.most[i], state.sum[i]);
      if (!first_tile && factor != 1.0F) scale_row(h.o + r * h.o_stride, h.head_dim, factor);
    }
    mix(h, block.rows, tile, s, first_tile);
  });
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    scale_row(h.o + r * h.o_stride, h.head_dim, 1.0F / state.sum[i]);
    h.lse[r] = state.most[i] + std::log(state.sum[i]);
  }
}

}  // namespace

void CpuOps::do_attention_forward(TensorView o, TensorView lse, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                                  const AttentionShape& shape) {
  const std::int64_t group = shape.heads / shape.kv_heads;
  const std::int64_t d = shape.head_dim;
  const std::int64_t work = shape.batch * shape.heads * products_per_head(shape) / 4;
  parallel_items(threads_, shape.batch * shape.kv_heads, work, [&](std::int64_t item) {
    static thread_local Scratch scratch;
    float* tile = scratch.floats(block_rows * tile_stride);
    const std::int64_t sequence = item / shape.kv_heads;
    const std::int64_t kv_head = item % shape.kv_heads;
    for (std::int64_t row = 0; row < shape.q_len; row += block_rows) {
      const QueryBlock block(shape, sequence, row);
      const std::int64_t q_row = sequence * shape.q_len + row;
      const std::int64_t kv_row = sequence * shape.kv_len;
      for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        forward_block(
            {q.row(q_row) + head * d, k.row(kv_row) + kv_head * d, v.row(kv_row) + kv_head * d, o.row(q_row) + head * d,
             lse.row(head) + q_row, q.stride, k.stride, v.stride, o.stride, d, shape.scale},
            block, tile);
      }
    }
  });
}

}  // namespace lamina::cpu
