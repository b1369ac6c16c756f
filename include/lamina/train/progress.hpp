// What a person sees while a run goes on: one live line on a terminal, plain lines in a batch log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <lamina/train/metrics.hpp>

namespace lamina {

// "step 120/600  loss 2.1034  grad 0.84  lr 3.0e-04  5321 tok/s  1 min 32 s left"
[[nodiscard]] std::string progress_text(const StepResult& result, const StepTimes& times, std::int64_t total_steps,
                                        double mean_step_s, const std::optional<EvaluationResult>& validation);

class Progress {
 public:
  // on_terminal: standard error is a terminal.
  Progress(std::int64_t total_steps, std::int64_t log_every, bool on_terminal);
  void step(const StepResult& result, const StepTimes& times, const std::optional<EvaluationResult>& validation);
  // Ends the live line, before other output.
  void finish_line();

 private:
  std::int64_t total_steps_, log_every_;
  bool on_terminal_;
  bool line_open_ = false;
  double mean_step_s_ = 0;  // moving average
};

}  // namespace lamina
