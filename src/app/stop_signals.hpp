// Signals that ask a run to save and end at the next step boundary.
#pragma once

#include <optional>

#include <lamina/mpi/environment.hpp>

namespace lamina {

// SIGINT (Ctrl-C), SIGTERM and SIGUSR2 (what Slurm sends before the time limit with --signal) are noted instead of
// ending the process; the process that `speaks` says so at once. SIGINT or SIGTERM again, half a second or more later,
// ends the process without saving. Own them after MPI has started: libraries may have taken them.
void note_stop_signals(bool speaks);
[[nodiscard]] bool stop_signal_seen();

// Seconds that Open MPI's mpirun leaves its ranks between SIGTERM and SIGKILL when it is asked to stop (its parameter
// odls_base_sigkill_timeout; it also waits that long before it passes SIGTERM on). None: not started by it.
[[nodiscard]] std::optional<double> seconds_before_kill(const mpi::Lookup& environment);

// What the trainer asks at the beginning of every step: whether to stop after it. Warns once, on the rank that speaks,
// when a step takes longer than mpirun would wait.
class StopWish {
 public:
  StopWish(bool speaks, std::optional<double> before_kill_s) : speaks_(speaks), before_kill_s_(before_kill_s) {}
  [[nodiscard]] bool operator()();

 private:
  bool speaks_;
  std::optional<double> before_kill_s_;
  int steps_ = 0;
  double begin_ = 0;  // of the last step
};

}  // namespace lamina
