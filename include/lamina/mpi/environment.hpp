// MPI's lifetime, and whether the launcher started what it was asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <lamina/base/error.hpp>

namespace lamina::mpi {

// Initialises MPI once and finalises it in its destructor. Declared first in `app`, so it dies last. Only the thread
// that made it calls MPI. When an exception is leaving the scope the destructor does nothing: the catch in `app`
// decides between a common end and abort().
class Environment {
 public:
  Environment(int& argc, char**& argv);
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment();

  // Ends all ranks of the job with `code`.
  [[noreturn]] static void abort(ExitCode code);
  // "Open MPI v4.1.4, ..."
  [[nodiscard]] static std::string library_version();

 private:
  int exceptions_at_start_;
};

// Looks up an environment variable: nullopt when unset.
using Lookup = std::function<std::optional<std::string>(const char*)>;

// The number of tasks the launcher says it started, from the variables of mpirun, srun and PMI; nullopt when there are
// none.
[[nodiscard]] std::optional<std::int64_t> launched_tasks(const Lookup& environment);

// Throws UsageError when Slurm says that there are several tasks but nothing of PMI, PMIx or mpirun is there for MPI to
// find them with: some MPI builds abort inside MPI_Init then, others make every task a world of its own. Call before
// MPI starts.
void refuse_unreachable_tasks(const Lookup& environment);

// Throws UsageError when the limits of this process leave too little address space for MPI, which would end with a
// signal or wait for ever. Where there is a limit, what malloc reserves for threads is kept out of it. Call before MPI
// starts.
void require_space_for_mpi(const Lookup& environment);

// Whether this task is the one that tells what is wrong before MPI has started: the first of all, or of its node, by
// the variables of mpirun and srun.
[[nodiscard]] bool first_of_all_tasks(const Lookup& environment);
[[nodiscard]] bool first_of_node(const Lookup& environment);

// Throws UsageError when the launcher started several tasks but each came up as a world of its own (as `srun` without
// the right
// --mpi does): N runs would overwrite each other.
void refuse_singletons(std::int64_t world_size, const Lookup& environment);

}  // namespace lamina::mpi
