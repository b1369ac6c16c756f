#include "memory_check.hpp"

#include <set>
#include <vector>

#include <lamina/base/address_space.hpp>
#include <lamina/base/error.hpp>
#include <lamina/base/host_memory.hpp>
#include <lamina/base/text.hpp>
#include <lamina/model/model_runner.hpp>
#include <lamina/optim/optimizer.hpp>

#include <fmt/format.h>

namespace lamina {

RankMemory planned_memory(const RunConfig& config, const ModelPlan& plan, const StorePlan& store, const Mesh& mesh,
                          SumOrder order) {
  RankMemory memory;
  memory.shards = state_bytes(store, mesh) + update_needs(config.optim, store, mesh).bytes;
  memory.activations = ModelRunner::activation_bytes(plan, config.train.micro_batch, config.data.seq_len, true);
  memory.node_slots = slot_bytes_of_node(store, mesh, order);
  for (const UnitSpec& unit : plan.units) {
    const auto bytes = static_cast<std::uint64_t>(unit.elements()) * sizeof(float);
    if (bytes <= memory.largest_unit_bytes) continue;
    memory.largest_unit = unit.name;
    memory.largest_unit_bytes = bytes;
  }
  return memory;
}

namespace {

// What a rank takes besides what is planned: stacks of its threads, and buffers of MPI, HDF5 and text.
constexpr std::uint64_t unplanned_bytes = std::uint64_t{96} << 20;

}  // namespace

void require_space(const mpi::Communicator& world, const RankMemory& memory) {
  world.agree(
      [&] {
        require_address_space(
            memory.shards + memory.activations + memory.node_slots + unplanned_bytes,
            fmt::format("a rank with {} of shards, {} of activations and {} of its node's slots",
                        human_bytes(memory.shards), human_bytes(memory.activations), human_bytes(memory.node_slots)));
      },
      "the check of address space");
}

void require_memory(const mpi::Communicator& world, const Topology& topology, const RankMemory& memory) {
  const auto own = static_cast<std::int64_t>(memory.shards + memory.activations);
  const auto slots = static_cast<std::int64_t>(memory.node_slots);
  const std::vector<std::int64_t> needs = world.all_gather(std::span(&own, 1), "the memory that ranks need");
  const std::vector<std::int64_t> node_slots = world.all_gather(std::span(&slots, 1), "the memory of slots");
  world.agree(
      [&] {
        const std::optional<std::uint64_t> available = available_memory();
        if (!available) return;
        const std::string& host = topology.host_of(topology.rank());
        std::int64_t need = 0, ranks = 0;
        std::set<int> nodes;  // pretended nodes share a host
        for (int rank = 0; rank < topology.world_size(); ++rank) {
          if (topology.host_of(rank) != host) continue;
          ++ranks;
          need += needs[static_cast<std::size_t>(rank)];
          if (nodes.insert(topology.node_of(rank)).second) need += node_slots[static_cast<std::size_t>(rank)];
        }
        if (static_cast<std::uint64_t>(need) <= *available) return;
        throw UsageError(one_line(
            fmt::format("{} has {} of memory left and its {} rank(s) need {}", host, human_bytes(*available), ranks,
                        human_bytes(static_cast<std::uint64_t>(need))),
            fmt::format("a rank has {} of shards and {} of activations, a node {} of slots for units of up to "
                        "{} ({})",
                        human_bytes(memory.shards), human_bytes(memory.activations), human_bytes(memory.node_slots),
                        human_bytes(memory.largest_unit_bytes), memory.largest_unit),
            "use more nodes, a strategy that shards more, smaller units, less prefetch or a smaller "
            "train.micro_batch; lamina plan shows what each would take"));
      },
      "the check of memory");
}

}  // namespace lamina
