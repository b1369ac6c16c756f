// How a strategy arranges weights, gradients and optimizer state: which part of a unit a rank keeps of each, and the
// memory that takes. Pure arithmetic; the one place that reads the strategy.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <lamina/comm/fabric.hpp>
#include <lamina/config/run_config.hpp>
#include <lamina/shard/unit_spec.hpp>
#include <lamina/topology/mesh.hpp>

namespace lamina {

struct StorePlan {
  std::vector<UnitSpec> units;
  int prefetch = 1;                   // 0..3 uses ahead, where the use is a forward
  int prefetch_backward = 1;          // likewise a backward
  std::int64_t bucket_elements = 0;   // at most, of a bucket of gradients; 0 = whole units
  int moments = 2;                    // buffers of optimizer state: 0, 1 or 2 (optim's moment_count)
  int shard_size = 1;                 // ranks that hold one copy of the weights between them; 1 = every rank holds all
  int pinned_units = 0;               // units that stay full for a whole micro-step (the root), 0 or 1
  bool keep_full = false;             // gathered units stay until their last use in a micro-step
  bool optimizer_over_world = false;  // moments and updates divided among all ranks, not only inside a shard group
  bool defer_replicas =
      false;                // gradients are summed inside the shard group each micro-step, across groups once a step
  bool local_sums = false;  // gradients are summed on the rank, whole, and reduced in the last micro-step only
};

// The order that `reduction` means here: automatic is rank on one node, hierarchical on several.
[[nodiscard]] SumOrder sum_order(const ReductionSection& reduction, const Topology& topology);

// Ranks of a shard group under `parallel`. Throws UsageError when the strategy does not fit the topology.
[[nodiscard]] int shard_group_size(const ParallelSection& parallel, const Topology& topology);

// pinned_units: how many of the units (0 or 1, the root) stay full for whole micro-steps.
[[nodiscard]] StorePlan make_store_plan(const ParallelSection& parallel, std::vector<UnitSpec> units, int pinned_units,
                                        const Topology& topology, SumOrder order);

// Whether something of a unit's gradient is exchanged once a step, after its last reduction.
[[nodiscard]] bool exchanges_once_a_step(const StorePlan& plan, const Mesh& mesh);

// Bytes of one rank's share of parameters, moments and gradient sums, whole gradients of local_sums included.
[[nodiscard]] std::uint64_t state_bytes(const StorePlan& plan, int world_size);

// Of these, the whole gradients.
[[nodiscard]] std::uint64_t local_sum_bytes(const StorePlan& plan, int world_size);

// The slots each fabric of the set is asked for; nothing for a fabric that the plan does not use, or that is another
// one.
struct SlotPlans {
  SlotPlan world, shard, replica;
};
[[nodiscard]] SlotPlans slot_plans(const StorePlan& plan, const Mesh& mesh);

// Bytes of all slots on the node of the mesh's own rank.
[[nodiscard]] std::uint64_t slot_bytes_of_node(const StorePlan& plan, const Mesh& mesh, SumOrder order);

[[nodiscard]] std::string_view name_of(Strategy strategy);

}  // namespace lamina
