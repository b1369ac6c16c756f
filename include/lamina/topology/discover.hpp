// Collective discovery of the machine: which ranks share a node, on which host, with how many cores.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <lamina/mpi/communicator.hpp>
#include <lamina/topology/topology.hpp>

namespace lamina {

// Groups ranks by shared memory. pretend_nodes > 0 instead splits the world into that many equal nodes of consecutive
// ranks (real messages pass between them, for tests on one machine); throws UsageError when that does not divide the
// world.
[[nodiscard]] Topology discover_topology(const mpi::Communicator& world, std::int64_t pretend_nodes);

// What one rank may run on.
struct RankPlacement {
  int rank = 0, node = 0, local_rank = 0;
  std::string host;
  std::vector<int> cores;  // of its affinity mask
  std::int64_t threads = 1;
};

// Everybody's placement, by rank. Collective.
[[nodiscard]] std::vector<RankPlacement> gather_placements(const mpi::Communicator& world, const Topology& topology,
                                                           std::int64_t threads);

// A readable table of the placements, and a warning line for each way in which ranks get in each other's way (empty
// when none): threads of a host outnumber its cores, or ranks bound to the same core while others idle.
[[nodiscard]] std::string placement_table(const std::vector<RankPlacement>& placements);
[[nodiscard]] std::vector<std::string> placement_warnings(const std::vector<RankPlacement>& placements);

}  // namespace lamina
