// Token tables and the loss.
#include "cpu_ops.hpp"
#include "fast_exp.hpp"
#include "lanes.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lamina::cpu {
namespace {

void add_to(float* target, const float* source, std::int64_t n) {
  for_groups(n, [&](auto io, std::int64_t i) { io.store(target + i, io.load(target + i) + io.load(source + i)); });
}

float largest(const float* x, std::int64_t n) {
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  Float8 m0 = splat(lowest), m1 = m0;
  std::int64_t i = 0;
  for (; i + 2 * width <= n; i += 2 * width) {
    m0 = max8(m0, load8(x + i));
    m1 = max8(m1, load8(x + i + width));
  }
  for_groups(n - i, [&](auto io, std::int64_t j) { m0 = max8(m0, io.load(x + i + j, lowest)); });
  return max_of_lanes(max8(m0, m1));
}

// The sum of exp(x - most) and, in place, the terms when asked. In blocks, so that the error does not grow with the
// vocabulary.
double sum_of_exponentials(float* x, std::int64_t n, float most, bool keep) {
  constexpr std::int64_t block = 1024;
  double sum = 0;
  for (std::int64_t first = 0; first < n; first += block) {
    float* part = x + first;
    sum += static_cast<double>(sum_over(std::min(block, n - first), [&](auto io, std::int64_t i) {
      const Float8 e = exp8(io.load(part + i, -std::numeric_limits<float>::infinity()) - splat(most));
      if (keep) io.store(part + i, e);
      return e;
    }));
  }
  return sum;
}

float cross_entropy_row(float* logits, std::int64_t n, std::int32_t label, bool to_gradient) {
  if (label == ignored_label) {
    if (to_gradient) std::fill_n(logits, n, 0.0F);
    return 0.0F;
  }
  const float most = largest(logits, n);
  const double of_label = static_cast<double>(logits[label]);
  const double sum = sum_of_exponentials(logits, n, most, to_gradient);
  if (to_gradient) {
    const Float8 scale = splat(static_cast<float>(1.0 / sum));
    for_groups(n, [&](auto io, std::int64_t i) { io.store(logits + i, io.load(logits + i) * scale); });
    logits[label] -= 1.0F;
  }
  return static_cast<float>(std::log(sum) + static_cast<double>(most) - of_label);
}

}  // namespace

void CpuOps::do_embedding_forward(TensorView y, ConstTensorView table, std::span<const std::int32_t> ids, Write write) {
  parallel_ranges(threads_, y.rows, y.size(), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const float* source = table.row(ids[static_cast<std::size_t>(t)]);
      if (write == Write::add) {
        add_to(y.row(t), source, y.cols);
      } else {
        std::copy_n(source, y.cols, y.row(t));
      }
    }
  });
}

void CpuOps::do_embedding_backward(TensorView d_table, ConstTensorView dy, std::span<const std::int32_t> ids,
                                   Write write) {
  if (write == Write::overwrite) do_fill(d_table, 0.0F);
  // Threads own columns, so that every row is summed in token order whatever their number.
  constexpr std::int64_t grain = 64;
  parallel_ranges(threads_, dy.cols, dy.size(), grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = 0; t < dy.rows; ++t) {
      add_to(d_table.row(ids[static_cast<std::size_t>(t)]) + first, dy.row(t) + first, last - first);
    }
  });
}

void CpuOps::do_cross_entropy(TensorView logits, std::span<const std::int32_t> labels, std::span<float> losses,
                              bool to_gradient) {
  constexpr std::int64_t cost = 8;
  parallel_ranges(threads_, logits.rows, logits.size() * cost, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const auto token = static_cast<std::size_t>(t);
      losses[token] = cross_entropy_row(logits.row(t), logits.cols, labels[token], to_gradient);
    }
  });
}

}  // namespace lamina::cpu
