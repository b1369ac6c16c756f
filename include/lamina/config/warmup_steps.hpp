// The length of the warm-up.
#pragma once

#include <cstdint>

#include <lamina/config/run_config.hpp>

namespace lamina {

// optim.warmup as steps: what is below 1 is a share of `total_steps`, rounded up. At least 0; may exceed total_steps
// (validate.hpp refuses that).
[[nodiscard]] std::int64_t warmup_steps(const OptimSection& optim, std::int64_t total_steps);

}  // namespace lamina
