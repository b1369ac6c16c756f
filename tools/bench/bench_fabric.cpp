// The MPI fabric against MPI's own collectives, inside one run: reduce-scatter and all-gather of one unit of fp32.
//
//   mpirun -n 2 lamina-bench-fabric [MEGABYTES] [REPEATS]
#include "fma_probe.hpp"

#include <cstdlib>
#include <functional>
#include <vector>

#include <lamina/base/failure.hpp>
#include <lamina/comm/fabric_registry.hpp>
#include <lamina/mpi/check.hpp>
#include <lamina/mpi/environment.hpp>
#include <lamina/topology/discover.hpp>

#include <fmt/format.h>
#include <mpi.h>

namespace {

using namespace lamina;

// The slowest rank's time of `body`.
double timed(const mpi::Communicator& world, const std::function<void()>& body) {
  world.barrier("the start");
  const double begin = bench::now();
  body();
  return 1e-9 *
         static_cast<double>(world.max(static_cast<std::int64_t>(1e9 * (bench::now() - begin)), "the slowest rank"));
}

// Median times of both, alternating, and the median of their ratios.
void compare(const mpi::Communicator& world, const char* what, double bytes, int repeats,
             const std::function<void()>& ours, const std::function<void()>& theirs) {
  ours();
  theirs();
  std::vector<double> our_s, their_s, ratios;
  for (int i = 0; i < repeats; ++i) {
    our_s.push_back(timed(world, ours));
    their_s.push_back(timed(world, theirs));
    ratios.push_back(their_s.back() / our_s.back());
  }
  if (world.rank() != 0) return;
  fmt::print(
      "{:<16} {:>3} ranks {:>6.0f} MB: fabric {:>6.2f} GB/s, MPI {:>6.2f} GB/s, {:.1f} times as fast (median of {})\n",
      what, world.size(), bytes / 1e6, bytes / bench::median(our_s) / 1e9, bytes / bench::median(their_s) / 1e9,
      bench::median(ratios), repeats);
}

void run(int argc, char** argv) {
  const double megabytes = argc > 1 ? std::atof(argv[1]) : 64;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 9;
  mpi::Environment environment(argc, argv);
  const mpi::Communicator world = mpi::Communicator::world(std::chrono::seconds(600));
  const auto block = static_cast<std::int64_t>(megabytes * 1e6 / 4) / world.size() / 1024 * 1024;
  const std::int64_t elements = block * world.size();
  const double bytes = 4.0 * static_cast<double>(elements);
  const auto fabric = make_fabric("mpi", world, discover_topology(world, 0), SumOrder::rank);
  fabric->allocate({elements, 1, 1});
  std::vector<float> accumulator(static_cast<std::size_t>(block)), result(accumulator.size());
  std::vector<float> gradient(static_cast<std::size_t>(elements), 1.0F), full(gradient.size());
  std::fill_n(fabric->gradient(0).begin(), elements, 1.0F);

  compare(
      world, "reduce-scatter", bytes, repeats, [&] { fabric->reduce_scatter(0, 0, elements, accumulator); },
      [&] {
        mpi::check(MPI_Reduce_scatter_block(gradient.data(), result.data(), static_cast<int>(block), MPI_FLOAT, MPI_SUM,
                                            MPI_COMM_WORLD),
                   "MPI_Reduce_scatter_block");
      });
  compare(
      world, "all-gather", bytes, repeats,
      [&] {
        static_cast<void>(fabric->gather(0, accumulator));
        fabric->release(0);
      },
      [&] {
        mpi::check(MPI_Allgather(accumulator.data(), static_cast<int>(block), MPI_FLOAT, full.data(),
                                 static_cast<int>(block), MPI_FLOAT, MPI_COMM_WORLD),
                   "MPI_Allgather");
      });
}

}  // namespace

int main(int argc, char** argv) {
  return lamina::run_program([&] {
    run(argc, argv);
    return 0;
  });
}
