#include <algorithm>
#include <cmath>

#include <lamina/config/warmup_steps.hpp>

namespace lamina {

std::int64_t warmup_steps(const OptimSection& optim, std::int64_t total_steps) {
  constexpr double most = 9e18;  // fits 64 bits
  if (!(optim.warmup > 0)) return 0;
  const double steps = optim.warmup < 1 ? std::ceil(optim.warmup * static_cast<double>(total_steps)) : optim.warmup;
  return static_cast<std::int64_t>(std::clamp(steps, 0.0, most));
}

}  // namespace lamina
