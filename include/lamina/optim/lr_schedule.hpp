// The learning rate as a pure function of the step.
#pragma once

#include <cstdint>

#include <lamina/config/run_config.hpp>

namespace lamina {

// Learning rate of step `step` (1-based: the first update is step 1) of `total_steps`. No step is empty.
// Warm-up over W = warmup_steps(): lr * step / W for step <= W. Then, with x = (step - 1 - W) / (total_steps - W), from
// 0 in the step after the warm-up to 1 when all steps are done (the last one still has a little more than min_lr):
//   constant: lr;  linear: lr + x (min_lr - lr);  cosine: min_lr + (lr - min_lr)(1 + cos(pi x))/2 (Loshchilov and
//   Hutter 2017); wsd: lr until the last `decay` steps (default a fifth of all), then linear to min_lr (warm-up,
//   stable, decay; Hu et al. 2024).
// x is that of torch's LambdaLR with transformers' schedules; their warm-up is one step behind: it begins with a step
// of rate 0, which learns nothing.
[[nodiscard]] double learning_rate(const OptimSection& optim, std::int64_t step, std::int64_t total_steps);

}  // namespace lamina
