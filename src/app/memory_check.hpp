// Whether the hosts have the memory that a run is going to take.
#pragma once

#include <cstdint>
#include <string>

#include <lamina/config/run_config.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/mpi/communicator.hpp>
#include <lamina/shard/store_plan.hpp>
#include <lamina/topology/mesh.hpp>
#include <lamina/topology/topology.hpp>

namespace lamina {

struct RankMemory {
  std::uint64_t shards = 0, activations = 0;
  std::uint64_t node_slots = 0;  // of all ranks of the node together
  std::string largest_unit;      // for the message
  std::uint64_t largest_unit_bytes = 0;
};

// Of the mesh's own rank. `store.units` are the plan's.
[[nodiscard]] RankMemory planned_memory(const RunConfig& config, const ModelPlan& plan, const StorePlan& store,
                                        const Mesh& mesh, SumOrder order);

// Throws AgreedError (usage) when the limits of some rank (ulimit -v, -d) leave it less address space than it is going
// to map: its shards and activations, and all of the slots of its node. Collective.
void require_space(const mpi::Communicator& world, const RankMemory& memory);

// Throws AgreedError (usage) with the numbers when some host has less than its ranks need together. Collective.
void require_memory(const mpi::Communicator& world, const Topology& topology, const RankMemory& memory);

}  // namespace lamina
