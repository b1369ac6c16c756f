// What Slurm knows of the job that holds a run folder.
#pragma once

#include <optional>
#include <string>

#include <lamina/checkpoint/run_lock.hpp>
#include <lamina/mpi/environment.hpp>

namespace lamina {

// Job, step and number of restarts, if this is a job of Slurm.
void name_batch_job(LockHolder& self, const mpi::Lookup& environment);

// Asks `squeue`. Nullopt when it is not there or gives no answer within some seconds.
[[nodiscard]] std::optional<bool> batch_job_has_ended(const std::string& job, const std::string& step);

// What an answer of squeue means: its exit status and output (states, one a line, and errors).
[[nodiscard]] std::optional<bool> ended_by_answer(int status, const std::string& output);

}  // namespace lamina
