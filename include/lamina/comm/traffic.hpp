// What the MPI fabric sends to other nodes, and the memory it takes: pure arithmetic, for plans; tests hold the fabric
// to it.
#pragma once

#include <cstdint>

#include <lamina/comm/fabric.hpp>
#include <lamina/topology/topology.hpp>

namespace lamina {

// Floats that the topology's own rank sends when one unit of blocks of `block_elements` is gathered ...
[[nodiscard]] std::uint64_t floats_sent_by_gather(const Topology& topology, std::int64_t block_elements);
// ... and when its gradients are reduced.
[[nodiscard]] std::uint64_t floats_sent_by_reduction(const Topology& topology, SumOrder order,
                                                     std::int64_t block_elements);

// Bytes of slots and staging that Fabric::allocate(plan) takes on the node of the topology's own rank.
[[nodiscard]] std::uint64_t slot_memory_bytes(const Topology& topology, SumOrder order, const SlotPlan& plan);

}  // namespace lamina
