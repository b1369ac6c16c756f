// Element-wise work over views: contiguous ones as one long row, the others row by row.
#pragma once

#include "parallel.hpp"

#include <cstdint>

namespace lamina::cpu {

// body(row, col, n): n elements from (row, col) on, the rows cut in pieces for the threads. With `contiguous` (all
// operands are) the matrix is row 0 of rows*cols elements. `cost` is in operations an element.
template <typename Body>
void for_pieces(int threads, std::int64_t rows, std::int64_t cols, bool contiguous, std::int64_t cost, Body&& body) {
  constexpr std::int64_t grain = 4096;
  if (contiguous) {
    parallel_ranges(threads, rows * cols, rows * cols * cost, grain,
                    [&](std::int64_t first, std::int64_t last) { body(std::int64_t{0}, first, last - first); });
    return;
  }
  parallel_ranges(threads, rows, rows * cols * cost, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) body(row, std::int64_t{0}, cols);
  });
}

}  // namespace lamina::cpu
