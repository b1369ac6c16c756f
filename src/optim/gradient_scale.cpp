#include <algorithm>
#include <cmath>

#include <lamina/optim/gradient_scale.hpp>

namespace lamina {

void add_gradient_squares(WeightStore& store, Ops& ops, ExactSum& sum) {
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    const OptimizerShard shard = store.optimizer_shard(unit);
    const FlatRange counted = store.counted_range(unit);
    ops.add_sum_of_squares(sum, shard.grad.subspan(static_cast<std::size_t>(counted.begin - shard.range.begin),
                                                   static_cast<std::size_t>(counted.length())));
  }
}

GradientScale gradient_scale(double sum_of_squares, std::int64_t tokens, double max_norm) {
  GradientScale result;
  if (tokens == 0) {
    // Nothing to average over, but a diverged model makes NaN of a gradient of zeros.
    if (!std::isfinite(sum_of_squares)) result.norm = sum_of_squares;
    return result;
  }
  const auto count = static_cast<double>(tokens);
  result.norm = std::sqrt(sum_of_squares) / count;
  if (max_norm > 0) result.clip = std::min(1.0, max_norm / (result.norm + 1e-6));
  result.scale = result.clip / count;
  return result;
}

}  // namespace lamina
