// Signals that ask a run to save and end at the next step boundary.
#pragma once

namespace lamina {

// SIGTERM and SIGUSR2 (what Slurm sends before the time limit with --signal) are noted instead of ending the process.
// Own them after MPI has started: libraries may have taken them.
void note_stop_signals();
[[nodiscard]] bool stop_signal_seen();

}  // namespace lamina
