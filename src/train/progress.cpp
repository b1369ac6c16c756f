#include <algorithm>
#include <cmath>
#include <utility>

#include <lamina/base/log.hpp>
#include <lamina/base/steady_clock.hpp>
#include <lamina/base/text.hpp>
#include <lamina/train/progress.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

// Tokens a second, and those with a label apart where not all have one.
std::string speed_text(const StepResult& result, const StepTimes& times) {
  std::string text = fmt::format("{:.0f} tok/s", times.tok_s);
  const double labelled = static_cast<double>(result.tokens) / times.step_s;
  if (std::isfinite(labelled) && labelled < 0.995 * times.tok_s) text += fmt::format(" ({:.0f} labelled)", labelled);
  return text;
}

}  // namespace

std::string progress_text(const StepResult& result, const StepTimes& times, std::int64_t total_steps,
                          const std::string& left, const std::optional<EvaluationResult>& validation) {
  const std::string loss = result.no_labels ? "none" : fmt::format("{:.4f}", result.loss);
  std::string text = fmt::format("step {}/{}  loss {}  grad {:.3g}  lr {:.2e}  {}", result.step, total_steps, loss,
                                 result.grad_norm, result.lr, speed_text(result, times));
  if (result.skipped) text += "  skipped";
  if (validation) text += fmt::format("  validation {:.4f}", validation->loss);
  if (!left.empty()) text += "  " + left;
  return text;
}

void StepPace::step(double now) {
  const double seconds = now - std::exchange(last_, now);
  const std::int64_t counted = std::max<std::int64_t>(1, steps_++);  // the second replaces the first
  mean_ += (seconds - mean_) * std::max(1.0 / static_cast<double>(counted), 0.005);
}

Progress::Progress(const TrainSection& train, std::int64_t first_step, TerminalColumns columns)
    : total_steps_(train.steps),
      goal_(train.stop_at >= first_step ? std::min(train.stop_at, train.steps) : train.steps),
      log_every_(train.log_every),
      columns_(std::move(columns)),
      pace_(steady_seconds()) {}

std::string Progress::time_left(std::int64_t step) const {
  if (step >= goal_) return {};
  const std::string time = human_seconds(pace_.mean() * static_cast<double>(goal_ - step));
  return goal_ < total_steps_ ? fmt::format("{} to step {}", time, goal_) : time + " left";
}

void Progress::step(const StepResult& result, const StepTimes& times,
                    const std::optional<EvaluationResult>& validation) {
  if (++steps_ > 1) {
    step_s_ += times.step_s;
    tokens_ += times.tok_s * times.step_s;
    overlap_ += result.overlap.value_or(0);
    with_overlap_ += result.overlap ? 1 : 0;
  }
  pace_.step(steady_seconds());
  const std::string text = progress_text(result, times, total_steps_, time_left(result.step), validation);
  if (validation || result.step == goal_ || result.step % log_every_ == 0 || steps_ == 1) return log_info(text);
  const int columns = columns_ ? columns_() : 0;
  // A character in the last column would make some terminals begin another line.
  if (columns > 1) show_live_line(text.substr(0, static_cast<std::size_t>(columns - 1)));
}

std::string Progress::summary() const {
  if (steps_ < 2) return {};
  std::string text =
      fmt::format("mean step {:.3g} s ({:.0f} tok/s)", step_s_ / static_cast<double>(steps_ - 1), tokens_ / step_s_);
  if (with_overlap_ > 0) {
    text += fmt::format("; {:.0f} % of the communication hidden behind computation",
                        100 * overlap_ / static_cast<double>(with_overlap_));
  }
  return text;
}

}  // namespace lamina
