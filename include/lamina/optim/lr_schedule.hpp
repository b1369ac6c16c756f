// The learning rate as a pure function of the step.
#pragma once

#include <cstdint>

#include <lamina/config/run_config.hpp>

namespace lamina {

// Learning rate of step `step` (1-based: the first update is step 1) of `total_steps`.
// Warm-up: lr * step / warmup for step <= warmup. Then, with x from 0 (end of warm-up) to 1 (last step):
//   constant: lr;  linear: lr + x (min_lr - lr);  cosine: min_lr + (lr - min_lr)(1 + cos(pi x))/2 (Loshchilov and
//   Hutter 2017); wsd: lr until the last `decay` steps (default a fifth of all), then linear to min_lr (warm-up,
//   stable, decay; Hu et al. 2024).
[[nodiscard]] double learning_rate(const OptimSection& optim, std::int64_t step, std::int64_t total_steps);

}  // namespace lamina
