// The operations in double, as plainly as possible. Forward only: gradients come from finite differences.
#pragma once

#include "harness.hpp"

#include <span>

#include <lamina/ops/ops.hpp>

namespace lamina::test {

[[nodiscard]] Matrix linear(const Matrix& x, const Matrix& w, WeightLayout layout);
[[nodiscard]] Matrix add_row(const Matrix& x, const Matrix& row);
[[nodiscard]] Matrix rms_norm(const Matrix& x, const Matrix& w, double eps);
[[nodiscard]] Matrix layer_norm(const Matrix& x, const Matrix& w, const Matrix& b, double eps);
// cos_sin: as Ops::rope wants it, for theta 10000.
[[nodiscard]] Matrix rope_table(std::int64_t positions, std::int64_t head_dim);
[[nodiscard]] Matrix rope(const Matrix& x, std::int64_t head_dim, const Matrix& cos_sin,
                          std::span<const std::int32_t> positions);
[[nodiscard]] Matrix swiglu(const Matrix& gate_up);
[[nodiscard]] Matrix gelu(const Matrix& x);
// The loss of each row, [rows, 1].
[[nodiscard]] Matrix cross_entropy(const Matrix& logits, std::span<const std::int32_t> labels,
                                   const LossTerms& terms = {});

struct AttentionResult {
  Matrix o;
  Matrix lse;  // [heads, batch*q_len]
};
[[nodiscard]] AttentionResult attention(const Matrix& q, const Matrix& k, const Matrix& v, const AttentionShape& shape);

}  // namespace lamina::test
