// What a person sees while a run goes on: lines that stay every log_every steps, in the log and on the screen, and on a
// terminal a live line between them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <lamina/config/run_config.hpp>
#include <lamina/train/metrics.hpp>

namespace lamina {

// Columns of the terminal that standard error reaches, asked anew for every line because windows change; 0: none. An
// empty function: none.
using TerminalColumns = std::function<int()>;

// "step 120/600  loss 2.1034  grad 0.84  lr 3.0e-04  5321 tok/s (4100 labelled)  1 min 32 s left". `left` may be empty.
[[nodiscard]] std::string progress_text(const StepResult& result, const StepTimes& times, std::int64_t total_steps,
                                        const std::string& left, const std::optional<EvaluationResult>& validation);

// Time from step to step, with everything between them (validation, checkpoints). The first step, which starts
// everything up, counts only until there is another; old ones are forgotten over a few hundred steps.
class StepPace {
 public:
  explicit StepPace(double now) : last_(now) {}
  void step(double now);  // seconds of one clock
  [[nodiscard]] double mean() const { return mean_; }

 private:
  double last_, mean_ = 0;
  std::int64_t steps_ = 0;
};

class Progress {
 public:
  Progress(const TrainSection& train, std::int64_t first_step, TerminalColumns columns);
  void step(const StepResult& result, const StepTimes& times, const std::optional<EvaluationResult>& validation);
  // "mean step 0.35 s (5321 tok/s); 84 % of the communication hidden behind computation": of all steps after the first,
  // which starts everything up; empty when there was no more than one.
  [[nodiscard]] std::string summary() const;

 private:
  [[nodiscard]] std::string time_left(std::int64_t step) const;

  std::int64_t total_steps_, goal_, log_every_;  // goal: the step at which this start ends
  TerminalColumns columns_;
  StepPace pace_;
  std::int64_t steps_ = 0;  // seen; sums of all but the first follow
  double step_s_ = 0, tokens_ = 0, overlap_ = 0;
  std::int64_t with_overlap_ = 0;
};

}  // namespace lamina
