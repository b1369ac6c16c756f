// Linear maps: large ones through the matrix product, a few rows (token by token generation) in one pass over the
// weight.
#include "cpu_ops.hpp"
#include "gemm.hpp"
#include "lanes.hpp"
#include "parallel.hpp"
#include "scratch.hpp"

#include <algorithm>

namespace lamina::cpu {
namespace {

// Up to this many tokens a matrix product spends its time packing the weight.
constexpr std::int64_t gemv_rows = 4;

Factor weight_for_forward(ConstTensorView w, WeightLayout layout) {
  return {w.data, w.stride, layout == WeightLayout::out_in};
}

void set_rows(TensorView y, ConstTensorView row) {
  for (std::int64_t t = 0; t < y.rows; ++t) std::copy_n(row.data, y.cols, y.row(t));
}

void add_row_to_rows(TensorView y, ConstTensorView row) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    float* target = y.row(t);
    for_groups(y.cols,
               [&](auto io, std::int64_t i) { io.store(target + i, io.load(target + i) + io.load(row.data + i)); });
  }
}

// y[t] += w x[t] for outputs [first, last), w [O, I].
void few_rows_out_in(TensorView y, ConstTensorView x, ConstTensorView w, std::int64_t first, std::int64_t last) {
  for (std::int64_t o = first; o < last; ++o) {
    const float* weights = w.row(o);
    for (std::int64_t t = 0; t < y.rows; ++t) {
      const float* input = x.row(t);
      y.row(t)[o] += sum_over(x.cols, [&](auto io, std::int64_t i) {
        prefetch(weights + i);
        return io.load(weights + i) * io.load(input + i);
      });
    }
  }
}

// y[t] += x[t] w for outputs [first, last), w [I, O].
void few_rows_in_out(TensorView y, ConstTensorView x, ConstTensorView w, std::int64_t first, std::int64_t last) {
  for (std::int64_t i = 0; i < x.cols; ++i) {
    const float* weights = w.row(i) + first;
    for (std::int64_t t = 0; t < y.rows; ++t) {
      const Float8 input = splat(x.row(t)[i]);
      float* output = y.row(t) + first;
      for_groups(last - first, [&](auto io, std::int64_t o) {
        io.store(output + o, fma8(io.load(weights + o), input, io.load(output + o)));
      });
    }
  }
}

}  // namespace

void CpuOps::do_linear_forward(TensorView y, ConstTensorView x, ConstTensorView w, ConstTensorView bias,
                               WeightLayout layout, Write write) {
  // With the bias in place before the product, the product adds to it and its own pass to clear y falls away.
  if (!bias.empty() && write == Write::overwrite) set_rows(y, bias);
  if (!bias.empty() && write == Write::add) add_row_to_rows(y, bias);
  const bool adds = write == Write::add || !bias.empty();
  if (y.rows > gemv_rows) {
    gemm(y.rows, y.cols, x.cols, 1.0F, {x.data, x.stride}, weight_for_forward(w, layout), adds ? 1.0F : 0.0F, y.data,
         y.stride, threads_);
    return;
  }
  if (!adds) do_fill(y, 0.0F);
  parallel_ranges(threads_, y.cols, y.rows * y.cols * x.cols / 4, 64, [&](std::int64_t first, std::int64_t last) {
    if (layout == WeightLayout::out_in) {
      few_rows_out_in(y, x, w, first, last);
    } else {
      few_rows_in_out(y, x, w, first, last);
    }
  });
}

void CpuOps::do_linear_backward_input(TensorView dx, ConstTensorView dy, ConstTensorView w, WeightLayout layout,
                                      Write write) {
  gemm(dx.rows, dx.cols, dy.cols, 1.0F, {dy.data, dy.stride}, {w.data, w.stride, layout == WeightLayout::in_out},
       write == Write::add ? 1.0F : 0.0F, dx.data, dx.stride, threads_);
}

void CpuOps::do_linear_backward_weight(TensorView dw, ConstTensorView dy, ConstTensorView x, WeightLayout layout,
                                       Write write) {
  const float beta = write == Write::add ? 1.0F : 0.0F;
  const ConstTensorView& rows = layout == WeightLayout::out_in ? dy : x;
  const ConstTensorView& cols = layout == WeightLayout::out_in ? x : dy;
  gemm(dw.rows, dw.cols, dy.rows, 1.0F, {rows.data, rows.stride, true}, {cols.data, cols.stride}, beta, dw.data,
       dw.stride, threads_);
}

void CpuOps::do_linear_backward_bias(TensorView dbias, ConstTensorView dy, Write write) {
  // Threads own columns; a column is summed in chunks of rows, so that rounding errors grow with the chunk and not with
  // all rows.
  constexpr std::int64_t chunk_rows = 64;
  constexpr std::int64_t block_cols = 256;
  parallel_ranges(threads_, dy.cols, dy.size(), block_cols, [&](std::int64_t first, std::int64_t last) {
    float total[block_cols];
    float chunk[block_cols];
    for (std::int64_t col = first; col < last; col += block_cols) {
      const std::int64_t n = std::min(block_cols, last - col);
      std::fill_n(total, n, 0.0F);
      for (std::int64_t row = 0; row < dy.rows; row += chunk_rows) {
        std::fill_n(chunk, n, 0.0F);
        for (std::int64_t t = row; t < std::min(row + chunk_rows, dy.rows); ++t) {
          const float* source = dy.row(t) + col;
          for (std::int64_t i = 0; i < n; ++i) chunk[i] += source[i];
        }
        for (std::int64_t i = 0; i < n; ++i) total[i] += chunk[i];
      }
      for (std::int64_t i = 0; i < n; ++i)
        dbias.data[col + i] = write == Write::add ? dbias.data[col + i] + total[i] : total[i];
    }
  });
}

}  // namespace lamina::cpu
