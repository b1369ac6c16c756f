#include "replicated_store.hpp"
#include "sharded_store.hpp"

#include <algorithm>

#include <lamina/shard/weight_store.hpp>

namespace lamina {

namespace {
constexpr int gradient_slots = 2;           // one being computed, one being reduced
constexpr std::uint64_t state_buffers = 4;  // parameters, two moments, gradient accumulator
}  // namespace

std::uint64_t shard_bytes(const StorePlan& plan, int world_size) {
  std::uint64_t elements = 0;
  for (const UnitSpec& unit : plan.units) {
    const FlatLayout layout(unit, world_size);
    elements += static_cast<std::uint64_t>(plan.sharded ? layout.block_elements() : layout.padded_elements());
  }
  return elements * state_buffers * sizeof(float);
}

SlotPlan slot_plan(const StorePlan& plan, int world_size) {
  SlotPlan slots;
  for (const UnitSpec& unit : plan.units) {
    slots.slot_elements = std::max(slots.slot_elements, FlatLayout(unit, world_size).padded_elements());
  }
  slots.parameter_slots = plan.sharded ? plan.prefetch + 1 : 1;  // replicated: to collect gradients
  slots.gradient_slots = gradient_slots;
  return slots;
}

std::unique_ptr<WeightStore> make_weight_store(const StorePlan& plan, Device& device, Fabric& fabric) {
  if (plan.sharded) return std::make_unique<ShardedStore>(plan, device, fabric);
  return std::make_unique<ReplicatedStore>(plan, device, fabric);
}

}  // namespace lamina
