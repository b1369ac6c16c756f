#include <algorithm>

#include <lamina/base/error.hpp>
#include <lamina/comm/traffic.hpp>
#include <lamina/shard/flat_layout.hpp>
#include <lamina/shard/store_plan.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr int gradient_slots = 2;  // one being computed, one being reduced

bool is_hybrid(Strategy strategy) { return strategy == Strategy::hybrid || strategy == Strategy::hybrid_optimizer; }

std::int64_t bucket_elements(double megabytes) {
  constexpr double most = 1e12;  // more than any unit
  return static_cast<std::int64_t>(std::clamp(megabytes * 1024 * 1024 / sizeof(float), 1.0, most));
}

int hybrid_size(const ParallelSection& parallel, const Topology& topology) {
  const int world = topology.world_size();
  if (parallel.shard_size == 0) {
    if (topology.equal_nodes()) return topology.local_size();
    throw UsageError(one_line("strategy hybrid cannot take nodes as shard groups",
                              "the nodes have different numbers of ranks",
                              "set parallel.shard_size to a divisor of the number of ranks"));
  }
  if (parallel.shard_size > world || world % parallel.shard_size != 0) {
    throw UsageError(one_line(fmt::format("parallel.shard_size is {}", parallel.shard_size),
                              fmt::format("it does not divide the {} ranks", world), "choose a divisor"));
  }
  return static_cast<int>(parallel.shard_size);
}

}  // namespace

SumOrder sum_order(const ReductionSection& reduction, const Topology& topology) {
  const bool automatic_by_rank = reduction.order == ReductionOrder::automatic && topology.node_count() == 1;
  const bool by_rank = reduction.order == ReductionOrder::rank || automatic_by_rank;
  return by_rank ? SumOrder::rank : SumOrder::hierarchical;
}

int shard_group_size(const ParallelSection& parallel, const Topology& topology) {
  if (is_hybrid(parallel.strategy)) return hybrid_size(parallel, topology);
  if (parallel.shard_size != 0) {
    throw UsageError(one_line(fmt::format("parallel.shard_size is {}", parallel.shard_size),
                              fmt::format("strategy {} has no shard groups", name_of(parallel.strategy)),
                              "use it with strategy hybrid or hybrid_optimizer"));
  }
  const bool replicated = parallel.strategy == Strategy::no_shard || parallel.strategy == Strategy::shard_optimizer;
  if (replicated && parallel.reshard_after_forward != Reshard::yes) {
    throw UsageError(one_line("parallel.reshard_after_forward is set",
                              fmt::format("strategy {} keeps all weights on every rank", name_of(parallel.strategy)),
                              "leave it out, or use a strategy that shards weights"));
  }
  return replicated ? 1 : topology.world_size();
}

StorePlan make_store_plan(const ParallelSection& parallel, std::vector<UnitSpec> units, int pinned_units,
                          const Topology& topology, SumOrder order) {
  StorePlan plan;
  plan.pinned_units = pinned_units;
  plan.units = std::move(units);
  plan.prefetch = static_cast<int>(parallel.prefetch);
  plan.prefetch_backward =
      static_cast<int>(parallel.prefetch_backward < 0 ? parallel.prefetch : parallel.prefetch_backward);
  plan.bucket_elements = bucket_elements(parallel.bucket_mb);
  plan.local_sums = !parallel.reduce_each_micro_step;
  plan.shard_size = shard_group_size(parallel, topology);
  plan.keep_full = parallel.strategy == Strategy::shard_grad_op || parallel.reshard_after_forward != Reshard::yes;
  plan.optimizer_over_world =
      parallel.strategy == Strategy::shard_optimizer || parallel.strategy == Strategy::hybrid_optimizer;
  // In rank order every micro-step adds all ranks' gradients in one order, also across groups.
  const bool has_groups = plan.shard_size > 1 && plan.shard_size < topology.world_size();
  plan.defer_replicas = is_hybrid(parallel.strategy) && order == SumOrder::hierarchical && has_groups;
  return plan;
}

bool exchanges_once_a_step(const StorePlan& plan, const Mesh& mesh) {
  return plan.defer_replicas || (!plan.optimizer_over_world && mesh.replicas() > 1);
}

std::uint64_t state_bytes(const StorePlan& plan, int world_size) {
  const std::int64_t replicas = world_size / plan.shard_size;
  std::uint64_t floats = 0;
  for (const UnitSpec& unit : plan.units) {
    const std::int64_t block = FlatLayout(unit, world_size).block_elements();
    const std::int64_t part = block * replicas;
    const std::int64_t optimized = plan.optimizer_over_world ? block : part;
    const std::int64_t summed = plan.optimizer_over_world && !plan.defer_replicas ? block : part;
    const std::int64_t local = plan.local_sums ? part * plan.shard_size : 0;
    floats += static_cast<std::uint64_t>(part + plan.moments * optimized + summed + local);
  }
  return floats * sizeof(float);
}

std::uint64_t local_sum_bytes(const StorePlan& plan, int world_size) {
  std::int64_t floats = 0;
  for (const UnitSpec& unit : plan.units) floats += FlatLayout(unit, world_size).padded_elements();
  return plan.local_sums ? static_cast<std::uint64_t>(floats) * sizeof(float) : 0;
}

SlotPlans slot_plans(const StorePlan& plan, const Mesh& mesh) {
  std::int64_t largest = 0;
  for (const UnitSpec& unit : plan.units) {
    largest = std::max(largest, FlatLayout(unit, mesh.world().world_size()).padded_elements());
  }
  SlotPlans slots;
  const int rotating = std::max(plan.prefetch, plan.prefetch_backward) + 1;
  const int parameters = plan.keep_full ? static_cast<int>(plan.units.size()) : rotating + plan.pinned_units;
  const bool groups = mesh.shard_size() > 1 && mesh.replicas() > 1;
  SlotPlan& reducing = plan.defer_replicas ? slots.shard : slots.world;
  SlotPlan& gathering = groups ? slots.shard : slots.world;
  slots.world.slot_elements = slots.shard.slot_elements = largest;
  slots.replica.slot_elements = largest / mesh.shard_size();
  // With replicated weights the world itself collects what ranks have computed for each other, through one slot.
  gathering.parameter_slots = mesh.shard_size() > 1 ? parameters : (mesh.replicas() > 1 ? 1 : 0);
  reducing.gradient_slots = gradient_slots;
  if (groups) slots.replica.parameter_slots = 1;
  if (plan.defer_replicas) slots.replica.gradient_slots = 1;
  return slots;
}

std::uint64_t slot_bytes_of_node(const StorePlan& plan, const Mesh& mesh, SumOrder order) {
  // All groups of the node together; groups of one kind that lie on it need the same.
  const SlotPlans slots = slot_plans(plan, mesh);
  const auto bytes = [&](const Topology& group, const SlotPlan& wanted) -> std::uint64_t {
    if (wanted.parameter_slots + wanted.gradient_slots == 0) return 0;
    const auto on_node = static_cast<std::uint64_t>(mesh.world().local_size() / group.local_size());
    return on_node * slot_memory_bytes(group, order, wanted);
  };
  std::uint64_t sum = bytes(mesh.world(), slots.world);
  if (mesh.shard_size() > 1 && mesh.replicas() > 1) {
    sum += bytes(mesh.shard_group(), slots.shard) + bytes(mesh.replica_group(), slots.replica);
  }
  return sum;
}

std::string_view name_of(Strategy strategy) {
  switch (strategy) {
    case Strategy::no_shard:
      return "no_shard";
    case Strategy::shard_optimizer:
      return "shard_optimizer";
    case Strategy::shard_grad_op:
      return "shard_grad_op";
    case Strategy::full:
      return "full";
    case Strategy::hybrid:
      return "hybrid";
    case Strategy::hybrid_optimizer:
      return "hybrid_optimizer";
  }
  return "?";
}

}  // namespace lamina
