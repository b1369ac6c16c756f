#include <array>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <initializer_list>

#include <lamina/base/address_space.hpp>
#include <lamina/mpi/check.hpp>
#include <lamina/mpi/environment.hpp>

#include <fmt/format.h>
#include <malloc.h>
#include <mpi.h>

namespace lamina::mpi {

Environment::Environment(int& argc, char**& argv) : exceptions_at_start_(std::uncaught_exceptions()) {
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_MULTIPLE) {
    throw UsageError(one_line("MPI gives no support for several threads",
                              "gathers and reductions have threads of their own (MPI_THREAD_MULTIPLE)",
                              "use an MPI built with it, as distributions' packages of Open MPI and MPICH are"));
  }
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

Environment::~Environment() {
  if (std::uncaught_exceptions() > exceptions_at_start_) return;
  MPI_Finalize();
}

void Environment::abort(ExitCode code) {
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
  std::_Exit(static_cast<int>(code));
}

std::string Environment::library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  const std::string whole(text.data(), static_cast<std::size_t>(length));
  return whole.substr(0, whole.find(','));
}

namespace {

// Of the first variable that is set to a whole number.
std::optional<std::int64_t> first_number(const Lookup& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::optional<std::string> text = environment(name);
    if (!text) continue;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error == std::errc() && end == text->data() + text->size() && number >= 0) return number;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> launched_tasks(const Lookup& environment) {
  // Innermost launcher first: mpirun inside a Slurm allocation overrules Slurm's own counts.
  const std::optional<std::int64_t> tasks =
      first_number(environment, {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  return tasks == 0 ? std::nullopt : tasks;
}

bool first_of_all_tasks(const Lookup& environment) {
  return first_number(environment, {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}).value_or(0) == 0;
}

bool first_of_node(const Lookup& environment) {
  return first_number(environment, {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}).value_or(0) == 0;
}

void require_space_for_mpi(const Lookup& environment) {
  if (!address_space()) return;
#ifdef __GLIBC__
  ::mallopt(M_ARENA_MAX, 1);  // 64 MiB for each thread otherwise
#endif
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  constexpr std::uint64_t own = 160 * mebibyte, each_neighbour = 4 * mebibyte;  // Open MPI 4.1.4 takes 80
  const std::int64_t tasks = first_number(environment, {"OMPI_COMM_WORLD_LOCAL_SIZE"}).value_or(1);
  require_address_space(own + static_cast<std::uint64_t>(tasks) * each_neighbour, "MPI");
}

namespace {

constexpr const char* how_to_start =
    "start with `srun --mpi=pmix` (`srun --mpi=list` shows what is built in) or with mpirun; to start one "
    "task on purpose inside an allocation of several: SLURM_NTASKS=1 lamina train ...";

}  // namespace

void refuse_unreachable_tasks(const Lookup& environment) {
  for (const char* rank : {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"}) {
    if (environment(rank)) return;
  }
  const std::optional<std::int64_t> tasks = launched_tasks(environment);
  if (!tasks || *tasks == 1) return;
  throw UsageError(one_line(fmt::format("the launcher says {} tasks, but gives MPI no way to find them", *tasks),
                            "they would not see each other and would all run the same job", how_to_start));
}

void refuse_singletons(std::int64_t world_size, const Lookup& environment) {
  const std::optional<std::int64_t> tasks = launched_tasks(environment);
  if (world_size != 1 || !tasks || *tasks == 1) return;
  throw UsageError(one_line(fmt::format("the launcher says {} tasks, but MPI found a world of 1", *tasks),
                            "the tasks do not see each other and would all run the same job", how_to_start));
}

}  // namespace lamina::mpi
