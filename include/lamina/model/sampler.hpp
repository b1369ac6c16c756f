// Picks the next token from logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lamina {

struct SamplingOptions {
  double temperature = 0;  // 0 = greedy: the largest logit, the lower id on a tie
  std::int64_t top_k = 0;  // keep the k most likely tokens; 0 = all
  double top_p = 1;  // then keep the fewest most likely tokens whose probabilities reach top_p (Holtzman et al. 2020)
  std::uint64_t seed = 0;
};

// Draw number n of a seed is a pure function of (options, n, logits).
class Sampler {
 public:
  // Throws UsageError naming the option that makes no sense.
  explicit Sampler(const SamplingOptions& options);

  // Logits of the whole vocabulary. Throws DataError when they are not finite.
  [[nodiscard]] std::int32_t pick(std::span<const float> logits);

 private:
  [[nodiscard]] std::int32_t draw(std::span<const float> logits);

  SamplingOptions options_;
  std::uint64_t key_;
  std::uint64_t draws_ = 0;
  std::vector<std::int32_t> order_;    // candidates, most likely first
  std::vector<double> probabilities_;  // of order_, before normalisation
};

}  // namespace lamina
