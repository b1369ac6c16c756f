#include "batch_job.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <sstream>

#include <fmt/format.h>
#include <sys/wait.h>

namespace lamina {

void name_batch_job(LockHolder& self, const mpi::Lookup& environment) {
  self.job = environment("SLURM_JOB_ID").value_or("");
  self.job_step = environment("SLURM_STEP_ID").value_or("");
  const std::string restarts = environment("SLURM_RESTART_COUNT").value_or("0");
  std::from_chars(restarts.data(), restarts.data() + restarts.size(), self.job_restarts);
}

std::optional<bool> ended_by_answer(int status, const std::string& output) {
  if (status != 0) {  // old jobs are forgotten
    return output.find("Invalid job id") != std::string::npos ? std::optional(true) : std::nullopt;
  }
  // Jobs of these states have processes, or may still have some.
  constexpr std::array<std::string_view, 7> alive{"RUNNING",   "COMPLETING", "SUSPENDED", "STOPPED",
                                                  "SIGNALING", "STAGE_OUT",  "RESIZING"};
  std::istringstream states(output);
  for (std::string state; states >> state;) {
    if (std::ranges::find(alive, state) != alive.end()) return false;
  }
  return true;
}

std::optional<bool> batch_job_has_ended(const std::string& job, const std::string& step) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  if (job.empty() || !std::ranges::all_of(job, plain) || !std::ranges::all_of(step, plain)) return std::nullopt;
  const std::string what =
      step.empty() ? fmt::format("-j {} -o %T", job) : fmt::format("-s {}.{} -o RUNNING", job, step);
  std::FILE* answer = ::popen(fmt::format("timeout 20 squeue -h {} 2>&1", what).c_str(), "r");
  if (answer == nullptr) return std::nullopt;
  std::string output;
  for (std::array<char, 256> part{}; std::fgets(part.data(), part.size(), answer) != nullptr;) output += part.data();
  const int status = ::pclose(answer);
  return WIFEXITED(status) ? ended_by_answer(WEXITSTATUS(status), output) : std::nullopt;
}

}  // namespace lamina
