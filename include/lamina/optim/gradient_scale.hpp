// The global gradient norm and what scales the gradients before the update.
#pragma once

#include <cstdint>

#include <lamina/base/exact_sum.hpp>
#include <lamina/ops/ops.hpp>
#include <lamina/shard/weight_store.hpp>

namespace lamina {

// Adds the squares of this rank's part of all accumulated gradients: over all ranks every element counts exactly once.
// The caller sums over ranks.
void add_gradient_squares(WeightStore& store, Ops& ops, ExactSum& sum);

// What scales the accumulated (summed) gradients before the update.
struct GradientScale {
  double norm = 0;   // of the mean gradient, before clipping
  double clip = 1;   // coefficient of clipping, 1 when not clipped
  double scale = 0;  // clip / tokens
};
// sum_of_squares: of the summed gradients, over all ranks; tokens: labelled tokens of the global batch (0 gives scale
// 0, and norm 0 or what is not finite). Clipping as torch.nn.utils.clip_grad_norm_: min(1, max_norm / (norm + 1e-6)); max_norm 0 = none.
[[nodiscard]] GradientScale gradient_scale(double sum_of_squares, std::int64_t tokens, double max_norm);

}  // namespace lamina
