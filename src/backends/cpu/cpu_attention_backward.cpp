// Attention backward: recomputes the probabilities of a tile from the kept log-sum-exp (Dao et al., FlashAttention,
// 2022). A thread owns a key/value head of a sequence, so that dk and dv are summed in a fixed order without atomics.
#include "attention_tile.hpp"
#include "cpu_ops.hpp"
#include "gemm.hpp"
#include "parallel.hpp"
#include "scratch.hpp"

namespace lamina::cpu {
namespace {

// A matrix by its first element and stride.
template <typename T>
struct Rows {
  T* data;
  std::int64_t stride;
  [[nodiscard]] T* row(std::int64_t i) const { return data + i * stride; }
  [[nodiscard]] Factor factor(bool transposed = false) const { return {data, stride, transposed}; }
};

// One block of one head. q, o, d_out and dq begin at the block; k, v, dk and dv at the sequence.
struct Head {
  Rows<const float> q, k, v, o, d_out;
  Rows<float> dq, dk, dv;
  const float* lse;
  std::int64_t head_dim;
  float scale;
};

struct Tiles {
  float* p;   // probabilities, then the gradient of the scores
  float* dp;  // gradient of the probabilities
};

// p: scores to probabilities, zero where the row does not see the key.
void probabilities(float* p, std::int64_t cols, std::pair<std::int64_t, std::int64_t> visible, float lse) {
  const std::int64_t from = std::min(visible.first, cols);
  const std::int64_t to = std::max(visible.second, from);
  float* seen = p + from;
  for_groups(to - from, [&](auto io, std::int64_t i) { io.store(seen + i, exp8(io.load(seen + i) - splat(lse))); });
  std::fill(p, seen, 0.0F);
  std::fill(p + to, p + cols, 0.0F);
}

// p becomes scale * p * (dp - mean), the gradient of q k^T.
void score_gradients(float* p, const float* dp, std::int64_t cols, float mean, float scale) {
  for_groups(cols, [&](auto io, std::int64_t i) {
    io.store(p + i, io.load(p + i) * splat(scale) * (io.load(dp + i) - splat(mean)));
  });
}

void backward_tile(const Head& h, const QueryBlock& block, const KeyTile& tile, const Tiles& t,
                   const std::array<float, block_rows>& mean) {
  const std::int64_t d = h.head_dim;
  const Factor keys{h.k.row(tile.first), h.k.stride};
  const Factor keys_t{h.k.row(tile.first), h.k.stride, true};
  const Factor values_t{h.v.row(tile.first), h.v.stride, true};
  gemm(block.rows, tile.cols, d, h.scale, h.q.factor(), keys_t, 0.0F, t.p, tile_stride, 1);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    probabilities(t.p + r * tile_stride, tile.cols, tile.visible(block, r), h.lse[r]);
  }
  gemm(tile.cols, d, block.rows, 1.0F, {t.p, tile_stride, true}, h.d_out.factor(), 1.0F, h.dv.row(tile.first),
       h.dv.stride, 1);
  gemm(block.rows, tile.cols, d, 1.0F, h.d_out.factor(), values_t, 0.0F, t.dp, tile_stride, 1);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    score_gradients(t.p + r * tile_stride, t.dp + r * tile_stride, tile.cols, mean[static_cast<std::size_t>(r)],
                    h.scale);
  }
  const float dq_beta = tile.first == block.first_key ? 0.0F : 1.0F;
  gemm(block.rows, d, tile.cols, 1.0F, {t.p, tile_stride}, keys, dq_beta, h.dq.data, h.dq.stride, 1);
  gemm(tile.cols, d, block.rows, 1.0F, {t.p, tile_stride, true}, h.q.factor(), 1.0F, h.dk.row(tile.first), h.dk.stride,
       1);
}

void backward_block(const Head& h, const QueryBlock& block, const Tiles& tiles) {
  std::array<float, block_rows> mean{};  // of the gradient of the probabilities, weighted by them
  for (std::int64_t r = 0; r < block.rows; ++r) {
    mean[static_cast<std::size_t>(r)] = dot(h.d_out.row(r), h.o.row(r), h.head_dim);
  }
  for_tiles(block, [&](const KeyTile& tile) { backward_tile(h, block, tile, tiles, mean); });
}

void clear(const Rows<float>& m, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t i = 0; i < rows; ++i) std::fill_n(m.row(i), cols, 0.0F);
}

template <typename View>
auto rows_at(const View& view, std::int64_t row, std::int64_t col) {
  return Rows<std::remove_pointer_t<decltype(view.data)>>{view.row(row) + col, view.stride};
}

}  // namespace

void CpuOps::do_attention_backward(TensorView dq, TensorView dk, TensorView dv, ConstTensorView d_out,
                                   ConstTensorView o, ConstTensorView lse, ConstTensorView q, ConstTensorView k,
                                   ConstTensorView v, const AttentionShape& shape) {
  const std::int64_t group = shape.heads / shape.kv_heads;
  const std::int64_t d = shape.head_dim;
  const std::int64_t work = shape.batch * shape.heads * products_per_head(shape);
  parallel_items(threads_, shape.batch * shape.kv_heads, work, [&](std::int64_t item) {
    static thread_local Scratch scratch;
    float* memory = scratch.floats(2 * block_rows * tile_stride);
    const Tiles tiles{memory, memory + block_rows * tile_stride};
    const std::int64_t sequence = item / shape.kv_heads;
    const std::int64_t kv_head = item % shape.kv_heads;
    const std::int64_t kv_row = sequence * shape.kv_len;
    const std::int64_t kv_col = kv_head * d;
    clear(rows_at(dk, kv_row, kv_col), shape.kv_len, d);
    clear(rows_at(dv, kv_row, kv_col), shape.kv_len, d);
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (std::int64_t row = 0; row < shape.q_len; row += block_rows) {
        const std::int64_t at = sequence * shape.q_len + row;
        const std::int64_t col = head * d;
        const Head h{rows_at(q, at, col),
                     rows_at(k, kv_row, kv_col),
                     rows_at(v, kv_row, kv_col),
                     rows_at(o, at, col),
                     rows_at(d_out, at, col),
                     rows_at(dq, at, col),
                     rows_at(dk, kv_row, kv_col),
                     rows_at(dv, kv_row, kv_col),
                     lse.row(head) + at,
                     d,
                     shape.scale};
        backward_block(h, QueryBlock(shape, sequence, row), tiles);
      }
    }
  });
}

}  // namespace lamina::cpu
