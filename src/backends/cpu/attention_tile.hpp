// What the attention kernels share: the stack of query rows and the key tile they work on, and which keys a row sees.
//
// The query heads that share a key/value head are stacked: `heads` times `rows` rows of one block, head after head,
// against the same tile of keys. The products are then large enough to be efficient although a block has few rows, and
// few rows mean that little of the triangle above the diagonal is computed for nothing.
#pragma once

#include "fast_exp.hpp"
#include "lanes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <lamina/ops/ops.hpp>

namespace lamina::cpu {

inline constexpr std::int64_t most_rows = 64;  // of one head in a block
inline constexpr std::int64_t fewest_rows = 16;
inline constexpr std::int64_t most_heads = 8;                // of a stack
inline constexpr std::int64_t tile_cols = 256;               // keys of a tile
inline constexpr std::int64_t tile_stride = tile_cols + 16;  // not a power of two: rows fall in different cache sets
inline constexpr std::int64_t few_rows = 4;                  // below, products spend their time packing operands

// Query rows of one head in a block, when `heads` of them are stacked: more when the sequence is long, because the
// triangle then weighs less (measured at 256 and 2048 tokens).
inline std::int64_t rows_of_block(std::int64_t heads, std::int64_t q_len) {
  const std::int64_t stacked = q_len >= 1024 ? 128 : 64;
  return std::clamp(stacked / heads, fewest_rows, most_rows);
}

// Some query rows of one sequence, and the keys [first, last) that each sees.
struct QueryBlock {
  std::int64_t row;  // first row, within the sequence
  std::int64_t rows;
  std::int64_t first_key, last_key;  // union over the rows
  std::array<std::int64_t, most_rows> first, last;

  QueryBlock(const AttentionShape& s, std::int64_t sequence, std::int64_t row_, std::int64_t rows_)
      : row(row_), rows(std::min(rows_, s.q_len - row_)), first_key(s.kv_len), last_key(0) {
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

  // The part of the tile that row r of the block sees, as columns of the tile; empty when from == to.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> visible(const QueryBlock& block, std::int64_t r) const {
    const auto i = static_cast<std::size_t>(r);
    const std::int64_t from = std::clamp<std::int64_t>(block.first[i] - first, 0, cols);
    return {from, std::clamp(block.last[i] - first, from, cols)};
  }
};

// body(tile) over the keys of the block, in order.
template <typename Body>
void for_tiles(const QueryBlock& block, Body&& body) {
  for (std::int64_t key = block.first_key; key < block.last_key; key += tile_cols) {
    body(KeyTile{key, std::min(tile_cols, block.last_key - key)});
  }
}

// Heads of a stack: which columns of q and o they are.
struct HeadStack {
  std::int64_t first_head, heads, head_dim;
};

// body(stack) over the query heads of a key/value head.
template <typename Body>
void for_stacks(const AttentionShape& s, std::int64_t kv_head, Body&& body) {
  const std::int64_t group = s.heads / s.kv_heads;
  for (std::int64_t head = 0; head < group; head += most_heads) {
    body(HeadStack{kv_head * group + head, std::min(most_heads, group - head), s.head_dim});
  }
}

// body(stacked row, row of the block, row of the view at the head's columns) over the rows of a stack.
template <typename View, typename Body>
void for_stacked_rows(const HeadStack& stack, View view, std::int64_t first_row, std::int64_t rows, Body&& body) {
  for (std::int64_t head = 0; head < stack.heads; ++head) {
    for (std::int64_t r = 0; r < rows; ++r) {
      body(head * rows + r, r, view.row(first_row + r) + (stack.first_head + head) * stack.head_dim);
    }
  }
}

// Multiply-adds of one product over all visible scores of one head and sequence, for the choice of threads.
inline std::int64_t products_per_head(const AttentionShape& s) { return s.q_len * s.kv_len * s.head_dim / 2; }

inline float exp1(float x) { return exp8(splat(x))[0]; }

inline float dot(const float* a, const float* b, std::int64_t n) {
  return sum_over(n, [&](auto io, std::int64_t i) { return io.load(a + i) * io.load(b + i); });
}

// to = factor * from.
inline void scaled_copy(float* to, const float* from, std::int64_t n, float factor) {
  for_groups(n, [&](auto io, std::int64_t i) { io.store(to + i, io.load(from + i) * splat(factor)); });
}

}  // namespace lamina::cpu
