// The fabric of CPU ranks: slots in node-shared memory, messages over rails between nodes.
//
// Inside a node the gathered unit exists once: each rank writes its own block and the gather is a counter. Between
// nodes each rank sends its block to its partner on every other node (same local rank), which receives it straight into
// the shared slot. A reduction inside a node reads the peers' slots; between nodes the partner sends what its node has
// for a block. Waiting ranks sleep on a futex.
#pragma once

#include <memory>

#include <lamina/comm/fabric.hpp>
#include <lamina/mpi/communicator.hpp>

namespace lamina {

// `world` must outlive the fabric. Collective.
[[nodiscard]] std::unique_ptr<Fabric> make_mpi_fabric(const mpi::Communicator& world, const Topology& topology,
                                                      SumOrder order);

}  // namespace lamina
