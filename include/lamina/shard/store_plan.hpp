// How a strategy arranges weights, gradients and optimizer state: which part of a unit a rank keeps of each, and the
// memory that takes. Pure arithmetic; the one place that reads the strategy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/comm/fabric.hpp>
#include <lamina/config/run_config.hpp>
#include <lamina/shard/packed_tensors.hpp>
#include <lamina/shard/unit_spec.hpp>
#include <lamina/topology/mesh.hpp>

namespace lamina {

// A model's units, as a store needs to know them.
struct StoreUnits {
  std::vector<UnitSpec> units;
  int pinned = 0;  // how many stay full for a whole step (the root), 0 or 1
  int held = 0;    // how many have a gradient that is open across other units' backwards (a tied head), 0 or 1
};

struct StorePlan {
  std::vector<UnitSpec> units;
  int prefetch = 1;                   // 0..3 uses ahead, where the use is a forward
  int prefetch_backward = 1;          // likewise a backward
  std::int64_t bucket_elements = 0;   // at most, of a bucket of gradients; 0 = whole units
  int moments = 2;                    // buffers of optimizer state: 0, 1 or 2 (optim's plan_state)
  std::vector<PackedTensors> second;  // by unit: what has the second of two moments; empty = everything has
  bool ema = false;                   // averaged weights are kept beside the optimizer's state
  int shard_size = 1;                 // ranks that hold one copy of the weights between them; 1 = every rank holds all
  int pinned_units = 0;               // StoreUnits::pinned
  int gradient_slots = 2;             // one being computed, one being reduced, and StoreUnits::held
  bool keep_full = false;             // gathered units stay until their last use in a micro-step
  bool optimizer_over_world = false;  // moments and updates divided among all ranks, not only inside a shard group
  bool defer_replicas =
      false;                // gradients are summed inside the shard group each micro-step, across groups once a step
  bool local_sums = false;  // gradients are summed on the rank, whole, and reduced in the last micro-step only
  std::vector<bool> whole_units = {};  // by unit: stays whole on every rank, whatever shard_size; empty = none does
};

// Which units the patterns of parallel.ignore match, all of their tensors. Throws UsageError for a pattern that matches
// nothing, and for a unit of which some tensors match and some do not.
[[nodiscard]] std::vector<bool> find_whole_units(const std::string& ignore, const std::vector<UnitSpec>& units);
// Whether there are whole units beside sharded ones; then the plan of each kind alone.
[[nodiscard]] bool splits_units(const StorePlan& plan);
[[nodiscard]] StorePlan sharded_part(const StorePlan& plan);
[[nodiscard]] StorePlan whole_part(const StorePlan& plan);

// The order that `reduction` means here: automatic is rank on one node, hierarchical on several.
[[nodiscard]] SumOrder sum_order(const ReductionSection& reduction, const Topology& topology);

// Ranks of a shard group under `parallel`. Throws UsageError when the strategy does not fit the topology.
[[nodiscard]] int shard_group_size(const ParallelSection& parallel, const Topology& topology);

[[nodiscard]] StorePlan make_store_plan(const ParallelSection& parallel, StoreUnits units, const Topology& topology,
                                        SumOrder order);

// Whether something of a unit's gradient is exchanged once a step, after its last reduction.
[[nodiscard]] bool exchanges_once_a_step(const StorePlan& plan, const Mesh& mesh);

// Bytes of one rank's share of parameters, moments, averaged weights and gradient sums, whole gradients of local_sums
// included: of the mesh's own rank ...
[[nodiscard]] std::uint64_t state_bytes(const StorePlan& plan, const Mesh& mesh);
// ... and of the rank that has most. They are alike unless the second moment is only kept for some tensors.
[[nodiscard]] std::uint64_t state_bytes(const StorePlan& plan, int world_size);

// Of these, the whole gradients.
[[nodiscard]] std::uint64_t local_sum_bytes(const StorePlan& plan, int world_size);

// The ranks that hold one copy of the optimizer's state between them, as numbered by Fabric::exchange: the world, the
// shard group, or this rank alone.
[[nodiscard]] const Topology& optimizer_group(const StorePlan& plan, const Mesh& mesh);
// The part of `unit` that each of them updates, padding included; of a whole unit this rank updates all, and the others
// are not asked.
[[nodiscard]] std::vector<FlatRange> optimizer_ranges(const StorePlan& plan, const Mesh& mesh, std::size_t unit);

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
