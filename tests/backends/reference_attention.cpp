#include "reference.hpp"

#include <cmath>

namespace lamina::test {
namespace {

bool sees(const AttentionShape& s, std::int64_t sequence, std::int64_t row, std::int64_t key) {
  const std::int64_t position = s.kv_len - s.q_len + row;
  if (key > position) return false;
  if (s.window > 0 && key < position - s.window + 1) return false;
  return s.first_visible.empty() || key >= s.first_visible[static_cast<std::size_t>(sequence * s.q_len + row)];
}

}  // namespace

AttentionResult attention(const Matrix& q, const Matrix& k, const Matrix& v, const AttentionShape& s) {
  AttentionResult result{Matrix(q.rows, q.cols), Matrix(s.heads, q.rows)};
  std::vector<double> scores(static_cast<std::size_t>(s.kv_len));
  for (std::int64_t row = 0; row < q.rows; ++row) {
    const std::int64_t sequence = row / s.q_len;
    for (std::int64_t head = 0; head < s.heads; ++head) {
      const std::int64_t q_col = head * s.head_dim;
      const std::int64_t kv_col = head / (s.heads / s.kv_heads) * s.head_dim;
      double most = -INFINITY, sum = 0;
      for (std::int64_t key = 0; key < s.kv_len; ++key) {
        if (!sees(s, sequence, row % s.q_len, key)) continue;
        double score = 0;
        for (std::int64_t i = 0; i < s.head_dim; ++i)
          score += q(row, q_col + i) * k(sequence * s.kv_len + key, kv_col + i);
        scores[static_cast<std::size_t>(key)] = score * static_cast<double>(s.scale);
        most = std::max(most, scores[static_cast<std::size_t>(key)]);
      }
      for (std::int64_t key = 0; key < s.kv_len; ++key) {
        if (!sees(s, sequence, row % s.q_len, key)) continue;
        const double p = std::exp(scores[static_cast<std::size_t>(key)] - most);
        sum += p;
        for (std::int64_t i = 0; i < s.head_dim; ++i)
          result.o(row, q_col + i) += p * v(sequence * s.kv_len + key, kv_col + i);
      }
      for (std::int64_t i = 0; i < s.head_dim; ++i) result.o(row, q_col + i) /= sum;
      result.lse(head, row) = most + std::log(sum);
    }
  }
  return result;
}

}  // namespace lamina::test
