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
  // "mean step 0.35 s (5321 tok/s); 84 % of the communication hidden behind computation": of all steps after the first,
  // which starts everything up; empty when there was no more than one.
  [[nodiscard]] std::string summary() const;
  // Ends the live line, before other output.
  void finish_line();

 private:
  std::int64_t total_steps_, log_every_;
  bool on_terminal_;
  bool line_open_ = false;
  double mean_step_s_ = 0;  // moving average
  std::int64_t steps_ = 0;  // seen; sums of all but the first follow
  double step_s_ = 0, tokens_ = 0, overlap_ = 0;
  std::int64_t with_overlap_ = 0;
};

}  // namespace lamina
