// What the attention kernels share: the block of query rows and key tile they work on, and which keys a row sees.
#pragma once

#include "fast_exp.hpp"
#include "lanes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <lamina/ops/ops.hpp>

namespace lamina::cpu {

inline constexpr std::int64_t block_rows = 64;               // query rows of a block
inline constexpr std::int64_t tile_cols = 256;               // keys of a tile
inline constexpr std::int64_t tile_stride = tile_cols + 16;  // not a power of two: rows fall in different cache sets

// Some query rows of one sequence, and the keys [first, last) that each sees.
struct QueryBlock {
  std::int64_t row;                  // first row, within the sequence
  std::int64_t rows;                 // 1 .. block_rows
  std::int64_t first_key, last_key;  // union over the rows
  std::array<std::int64_t, block_rows> first, last;

  QueryBlock(const AttentionShape& s, std::int64_t sequence, std::int64_t row_)
      : row(row_), rows(std::min(block_rows, s.q_len - row_)), first_key(s.kv_len), last_key(0) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t position = s.kv_len - s.q_len + row + r;
      std::int64_t from = s.window > 0 ? std::max<std::int64_t>(0, position - s.window + 1) : 0;
      if (!s.first_visible.empty()) {
        from = std::max<std::int64_t>(from, s.first_visible[static_cast<std::size_t>(sequence * s.q_len + row + r)]);
      }
      first[static_cast<std::size_t>(r)] = from;
      last[static_cast<std::size_t>(r)] = position + 1;
      first_key = std::min(first_key, from);
      last_key = std::max(last_key, position + 1);
    }
  }
};

// The keys [first, first + cols) of a tile.
struct KeyTile {
  std::int64_t first;
  std::int64_t cols;

  // The part of the tile that row r of the block sees, as columns of the tile; empty when from >= to.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> visible(const QueryBlock& block, std::int64_t r) const {
    const auto i = static_cast<std::size_t>(r);
    return {std::max(block.first[i], first) - first, std::min(block.last[i], first + cols) - first};
  }
};

// body(tile) over the keys of the block, in order.
template <typename Body>
void for_tiles(const QueryBlock& block, Body&& body) {
  for (std::int64_t key = block.first_key; key < block.last_key; key += tile_cols) {
    body(KeyTile{key, std::min(tile_cols, block.last_key - key)});
  }
}

// Multiply-adds of one product over all visible scores of one head and sequence, for the choice of threads.
inline std::int64_t products_per_head(const AttentionShape& s) { return s.q_len * s.kv_len * s.head_dim / 2; }

inline float exp1(float x) { return exp8(splat(x))[0]; }

inline float dot(const float* a, const float* b, std::int64_t n) {
  return sum_over(n, [&](auto io, std::int64_t i) { return io.load(a + i) * io.load(b + i); });
}

inline void scale_row(float* x, std::int64_t n, float factor) {
  for_groups(n, [&](auto io, std::int64_t i) { io.store(x + i, io.load(x + i) * splat(factor)); });
}

}  // namespace lamina::cpu
