#include "reference.hpp"

#include <cmath>
#include <numbers>

namespace lamina::test {

Matrix linear(const Matrix& x, const Matrix& w, WeightLayout layout) {
  const bool out_in = layout == WeightLayout::out_in;
  Matrix y(x.rows, out_in ? w.rows : w.cols);
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t o = 0; o < y.cols; ++o) {
      for (std::int64_t i = 0; i < x.cols; ++i) y(t, o) += x(t, i) * (out_in ? w(o, i) : w(i, o));
    }
  }
  return y;
}

Matrix add_row(const Matrix& x, const Matrix& row) {
  Matrix y = x;
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.cols; ++i) y(t, i) += row(0, i);
  }
  return y;
}

Matrix rms_norm(const Matrix& x, const Matrix& w, double eps) {
  Matrix y = x;
  for (std::int64_t t = 0; t < x.rows; ++t) {
    double squares = 0;
    for (std::int64_t i = 0; i < x.cols; ++i) squares += x(t, i) * x(t, i);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.cols) + eps);
    for (std::int64_t i = 0; i < x.cols; ++i) y(t, i) = x(t, i) * scale * w(0, i);
  }
  return y;
}

Matrix layer_norm(const Matrix& x, const Matrix& w, const Matrix& b, double eps) {
  Matrix y = x;
  for (std::int64_t t = 0; t < x.rows; ++t) {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < x.cols; ++i) mean += x(t, i) / static_cast<double>(x.cols);
    for (std::int64_t i = 0; i < x.cols; ++i)
      variance += (x(t, i) - mean) * (x(t, i) - mean) / static_cast<double>(x.cols);
    for (std::int64_t i = 0; i < x.cols; ++i)
      y(t, i) = (x(t, i) - mean) / std::sqrt(variance + eps) * w(0, i) + b(0, i);
  }
  return y;
}

Matrix rope_table(std::int64_t positions, std::int64_t head_dim) {
  const std::int64_t half = head_dim / 2;
  Matrix table(positions, 2 * half);
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(p) * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
      table(p, i) = static_cast<double>(static_cast<float>(std::cos(angle)));
      table(p, half + i) = static_cast<double>(static_cast<float>(std::sin(angle)));
    }
  }
  return table;
}

Matrix rope(const Matrix& x, std::int64_t head_dim, const Matrix& cos_sin, std::span<const std::int32_t> positions) {
  Matrix y = x;
  const std::int64_t half = head_dim / 2;
  for (std::int64_t t = 0; t < x.rows; ++t) {
    const std::int64_t p = positions[static_cast<std::size_t>(t)];
    for (std::int64_t head = 0; head < x.cols / head_dim; ++head) {
      for (std::int64_t i = 0; i < half; ++i) {
        const std::int64_t a = head * head_dim + i;
        const std::int64_t b = a + half;
        y(t, a) = x(t, a) * cos_sin(p, i) - x(t, b) * cos_sin(p, half + i);
        y(t, b) = x(t, b) * cos_sin(p, i) + x(t, a) * cos_sin(p, half + i);
      }
    }
  }
  return y;
}

Matrix swiglu(const Matrix& gate_up) {
  Matrix y(gate_up.rows, gate_up.cols / 2);
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.cols; ++i) {
      const double g = gate_up(t, i);
      y(t, i) = g / (1 + std::exp(-g)) * gate_up(t, y.cols + i);
    }
  }
  return y;
}

Matrix gelu(const Matrix& x) {
  Matrix y = x;
  for (double& v : y.values) {
    v = 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
  }
  return y;
}

Matrix cross_entropy(const Matrix& logits, std::span<const std::int32_t> labels, const LossTerms& terms) {
  Matrix losses(logits.rows, 1);
  for (std::int64_t t = 0; t < logits.rows; ++t) {
    const std::int32_t label = labels[static_cast<std::size_t>(t)];
    if (label == ignored_label) continue;
    double most = logits(t, 0), sum = 0;
    for (std::int64_t i = 0; i < logits.cols; ++i) most = std::max(most, logits(t, i));
    for (std::int64_t i = 0; i < logits.cols; ++i) sum += std::exp(logits(t, i) - most);
    const double log_sum_exp = std::log(sum) + most;
    double to_all = 0;
    for (std::int64_t i = 0; i < logits.cols; ++i)
      to_all += (log_sum_exp - logits(t, i)) / static_cast<double>(logits.cols);
    losses(t, 0) = (1 - terms.label_smoothing) * (log_sum_exp - logits(t, label)) + terms.label_smoothing * to_all +
                   terms.z_loss * log_sum_exp * log_sum_exp;
  }
  return losses;
}

}  // namespace lamina::test
