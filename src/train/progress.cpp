#include <cstdio>

#include <lamina/base/log.hpp>
#include <lamina/base/text.hpp>
#include <lamina/train/progress.hpp>

#include <fmt/format.h>

namespace lamina {

std::string progress_text(const StepResult& result, const StepTimes& times, std::int64_t total_steps,
                          double mean_step_s, const std::optional<EvaluationResult>& validation) {
  std::string text = fmt::format("step {}/{}  loss {:.4f}  grad {:.3g}  lr {:.2e}  {:.0f} tok/s", result.step,
                                 total_steps, result.loss, result.grad_norm, result.lr, times.tok_s);
  if (result.skipped) text += "  skipped";
  if (validation) text += fmt::format("  validation {:.4f}", validation->loss);
  if (result.step < total_steps) {
    text += fmt::format("  {} left", human_seconds(mean_step_s * static_cast<double>(total_steps - result.step)));
  }
  return text;
}

Progress::Progress(std::int64_t total_steps, std::int64_t log_every, bool on_terminal)
    : total_steps_(total_steps), log_every_(log_every), on_terminal_(on_terminal) {}

void Progress::step(const StepResult& result, const StepTimes& times,
                    const std::optional<EvaluationResult>& validation) {
  if (++steps_ > 1) {
    step_s_ += times.step_s;
    tokens_ += static_cast<double>(result.tokens);
    overlap_ += result.overlap.value_or(0);
    with_overlap_ += result.overlap ? 1 : 0;
  }
  mean_step_s_ = mean_step_s_ == 0 ? times.step_s : 0.9 * mean_step_s_ + 0.1 * times.step_s;
  const std::string text = progress_text(result, times, total_steps_, mean_step_s_, validation);
  if (on_terminal_) {
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    line_open_ = true;
    if (validation) finish_line();  // stays on the screen
    return;
  }
  if (validation || result.step == total_steps_ || result.step % log_every_ == 0 || result.step == 1) log_info(text);
}

std::string Progress::summary() const {
  if (steps_ < 2) return {};
  std::string text = fmt::format("mean step {} ({:.0f} tok/s)",
                                 human_seconds(step_s_ / static_cast<double>(steps_ - 1)), tokens_ / step_s_);
  if (with_overlap_ > 0) {
    text += fmt::format("; {:.0f} % of the communication hidden behind computation",
                        100 * overlap_ / static_cast<double>(with_overlap_));
  }
  return text;
}

void Progress::finish_line() {
  if (line_open_) std::fputc('\n', stderr);
  line_open_ = false;
}

}  // namespace lamina
