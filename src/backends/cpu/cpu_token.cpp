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

// Sums over a row x: of exp(x - most), and of x - most if asked (else 0).
struct RowSums {
  double exponentials = 0, differences = 0;
};

// One pass over the row, in blocks, so that the error does not grow with the vocabulary; a block stays in the cache for
// both sums. With `keep` x becomes exp(x - most).
RowSums sums_of_row(float* x, std::int64_t n, float most, bool differences, bool keep) {
  constexpr std::int64_t block = 1024;
  RowSums sums;
  for (std::int64_t first = 0; first < n; first += block) {
    float* part = x + first;
    const std::int64_t length = std::min(block, n - first);
    if (differences) {
      sums.differences += static_cast<double>(
          sum_over(length, [&](auto io, std::int64_t i) { return io.load(part + i, most) - splat(most); }));
    }
    sums.exponentials += static_cast<double>(sum_over(length, [&](auto io, std::int64_t i) {
      const Float8 e = exp8(io.load(part + i, -std::numeric_limits<float>::infinity()) - splat(most));
      if (keep) io.store(part + i, e);
      return e;
    }));
  }
  return sums;
}

// The loss of a row; with log-sum-exp = log(sums.exponentials) + most. A term that is off is left out, not multiplied
// by 0: 0 times infinity would hide what the others say.
double loss_of_row(const RowSums& sums, double most, double of_label, std::int64_t n, const LossTerms& terms) {
  const double log_sum = std::log(sums.exponentials);
  const double log_sum_exp = log_sum + most;
  double loss = log_sum_exp - of_label;
  if (terms.label_smoothing > 0) {
    const double to_all = log_sum - sums.differences / static_cast<double>(n);  // mean of -log p
    loss = (1 - terms.label_smoothing) * loss + terms.label_smoothing * to_all;
  }
  if (terms.z_loss > 0) loss += terms.z_loss * log_sum_exp * log_sum_exp;
  return loss;
}

// exp(x - most), as sums_of_row left it, becomes the gradient: softmax * (1 + 2 z log-sum-exp) - e/V, less 1 - e at the
// label.
void gradient_of_row(float* x, std::int64_t n, std::int32_t label, double sum, double most, const LossTerms& terms) {
  const double stretch = terms.z_loss > 0 ? 1 + 2 * terms.z_loss * (std::log(sum) + most) : 1;
  const Float8 scale = splat(static_cast<float>(stretch / sum));
  if (terms.label_smoothing > 0) {
    const Float8 to_all = splat(static_cast<float>(terms.label_smoothing / static_cast<double>(n)));
    for_groups(n, [&](auto io, std::int64_t i) { io.store(x + i, io.load(x + i) * scale - to_all); });
  } else {
    for_groups(n, [&](auto io, std::int64_t i) { io.store(x + i, io.load(x + i) * scale); });
  }
  x[label] -= static_cast<float>(1 - terms.label_smoothing);
}

float cross_entropy_row(float* logits, std::int64_t n, std::int32_t label, bool to_gradient, const LossTerms& terms) {
  if (label == ignored_label) {
    if (to_gradient) std::fill_n(logits, n, 0.0F);
    return 0.0F;
  }
  const float most = largest(logits, n);
  const double of_label = static_cast<double>(logits[label]);
  const RowSums sums = sums_of_row(logits, n, most, terms.label_smoothing > 0, to_gradient);
  if (to_gradient) gradient_of_row(logits, n, label, sums.exponentials, static_cast<double>(most), terms);
  return static_cast<float>(loss_of_row(sums, static_cast<double>(most), of_label, n, terms));
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
                              bool to_gradient, const LossTerms& terms) {
  constexpr std::int64_t cost = 8;
  parallel_ranges(threads_, logits.rows, logits.size() * cost, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const auto token = static_cast<std::size_t>(t);
      losses[token] = cross_entropy_row(logits.row(t), logits.cols, labels[token], to_gradient, terms);
    }
  });
}

}  // namespace lamina::cpu
