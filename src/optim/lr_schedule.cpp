#include <algorithm>
#include <cmath>
#include <numbers>

#include <lamina/config/warmup_steps.hpp>
#include <lamina/optim/lr_schedule.hpp>

namespace lamina {

namespace {

double toward_end(const OptimSection& optim, double x) { return optim.lr + x * (optim.min_lr - optim.lr); }

// Share of the steps begin+1 .. end that are done before `step`, inside [0, 1].
double progress(std::int64_t step, std::int64_t begin, std::int64_t end) {
  if (end <= begin) return step > begin ? 1.0 : 0.0;
  return std::clamp(static_cast<double>(step - 1 - begin) / static_cast<double>(end - begin), 0.0, 1.0);
}

}  // namespace

double learning_rate(const OptimSection& optim, std::int64_t step, std::int64_t total_steps) {
  const std::int64_t warmup = warmup_steps(optim, total_steps);
  if (step <= warmup) return optim.lr * static_cast<double>(step) / static_cast<double>(warmup);
  const double x = progress(step, warmup, total_steps);
  switch (optim.schedule) {
    case ScheduleKind::constant:
      return optim.lr;
    case ScheduleKind::linear:
      return toward_end(optim, x);
    case ScheduleKind::cosine:
      return optim.min_lr + (optim.lr - optim.min_lr) * 0.5 * (1.0 + std::cos(std::numbers::pi * x));
    case ScheduleKind::wsd: {
      const std::int64_t decay = optim.decay > 0 ? optim.decay : std::max<std::int64_t>(1, total_steps / 5);
      return toward_end(optim, progress(step, std::max(warmup, total_steps - decay), total_steps));
    }
  }
  return optim.lr;
}

}  // namespace lamina
