#include <algorithm>

#include <lamina/base/error.hpp>
#include <lamina/comm/traffic.hpp>
#include <lamina/shard/flat_layout.hpp>
#include <lamina/shard/store_plan.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

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
  if (replicated && !parallel.ignore.empty()) {
    throw UsageError(one_line("parallel.ignore is set",
                              fmt::format("strategy {} keeps all weights on every rank", name_of(parallel.strategy)),
                              "leave it out, or use a strategy that shards weights"));
  }
  return replicated ? 1 : topology.world_size();
}

StorePlan make_store_plan(const ParallelSection& parallel, StoreUnits units, const Topology& topology, SumOrder order) {
  StorePlan plan;
  plan.pinned_units = units.pinned;
  plan.gradient_slots += units.held;
  plan.units = std::move(units.units);
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
  if (!parallel.ignore.empty()) plan.whole_units = find_whole_units(parallel.ignore, plan.units);
  return plan;
}

bool exchanges_once_a_step(const StorePlan& plan, const Mesh& mesh) {
  return splits_units(plan) || plan.defer_replicas || (!plan.optimizer_over_world && mesh.replicas() > 1);
}

namespace {

// What a rank keeps of a unit follows from its block of the world: parts consist of whole blocks.
FlatRange optimizer_range(const StorePlan& plan, std::int64_t block_elements, std::int64_t replicas,
                          std::int64_t block) {
  const std::int64_t length = plan.optimizer_over_world ? block_elements : block_elements * replicas;
  const std::int64_t index = plan.optimizer_over_world ? block : block / replicas;
  return {index * length, (index + 1) * length};
}

// Floats of the second moment of the rank with that block.
std::int64_t second_moment_floats(const StorePlan& plan, int world_size, std::int64_t block) {
  if (plan.moments < 2) return 0;
  std::int64_t floats = 0;
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
    const std::int64_t block_elements = FlatLayout(plan.units[unit], world_size).block_elements();
    const FlatRange range = optimizer_range(plan, block_elements, world_size / plan.shard_size, block);
    floats += plan.second.empty() ? range.length() : plan.second.at(unit).packed(range).length();
  }
  return floats;
}

// Without the second moment: the same on every rank.
std::int64_t common_floats(const StorePlan& plan, int world_size) {
  const std::int64_t replicas = world_size / plan.shard_size;
  std::int64_t floats = 0;
  for (const UnitSpec& unit : plan.units) {
    const std::int64_t block = FlatLayout(unit, world_size).block_elements();
    const std::int64_t part = block * replicas;
    const std::int64_t optimized = plan.optimizer_over_world ? block : part;
    const std::int64_t summed = plan.optimizer_over_world && !plan.defer_replicas ? block : part;
    const std::int64_t local = plan.local_sums ? part * plan.shard_size : 0;
    const int optimizer_buffers = std::min(plan.moments, 1) + (plan.ema ? 1 : 0);
    floats += part + optimizer_buffers * optimized + summed + local;
  }
  return floats;
}

std::uint64_t float_bytes(std::int64_t floats) { return static_cast<std::uint64_t>(floats) * sizeof(float); }

}  // namespace

std::uint64_t state_bytes(const StorePlan& plan, const Mesh& mesh) {
  if (splits_units(plan)) return state_bytes(sharded_part(plan), mesh) + state_bytes(whole_part(plan), mesh);
  const Topology& world = mesh.world();
  return float_bytes(common_floats(plan, world.world_size()) +
                     second_moment_floats(plan, world.world_size(), world.block_of(world.rank())));
}

std::uint64_t state_bytes(const StorePlan& plan, int world_size) {
  if (splits_units(plan))
    return state_bytes(sharded_part(plan), world_size) + state_bytes(whole_part(plan), world_size);
  std::int64_t most = second_moment_floats(plan, world_size, 0);
  const std::int64_t blocks = plan.second.empty() ? 1 : world_size;
  for (std::int64_t block = 1; block < blocks; ++block) {
    most = std::max(most, second_moment_floats(plan, world_size, block));
  }
  return float_bytes(common_floats(plan, world_size) + most);
}

const Topology& optimizer_group(const StorePlan& plan, const Mesh& mesh) {
  return plan.optimizer_over_world ? mesh.world() : mesh.shard_group();
}

std::vector<FlatRange> optimizer_ranges(const StorePlan& plan, const Mesh& mesh, std::size_t unit) {
  const std::int64_t block = FlatLayout(plan.units.at(unit), mesh.world().world_size()).block_elements();
  const std::int64_t length = plan.optimizer_over_world ? block : block * mesh.replicas();
  const Topology& group = optimizer_group(plan, mesh);
  std::vector<FlatRange> ranges;
  if (splits_units(plan) && plan.whole_units[unit]) {
    ranges.resize(static_cast<std::size_t>(group.world_size()));
    ranges[static_cast<std::size_t>(group.rank())] = {0, block * mesh.world().world_size()};
    return ranges;
  }
  for (int rank = 0; rank < group.world_size(); ++rank) {
    ranges.push_back({group.block_of(rank) * length, (group.block_of(rank) + 1) * length});
  }
  return ranges;
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
  reducing.gradient_slots = plan.gradient_slots;
  if (groups) slots.replica.parameter_slots = 1;
  if (plan.defer_replicas) slots.replica.gradient_slots = 1;
  return slots;
}

std::uint64_t slot_bytes_of_node(const StorePlan& plan, const Mesh& mesh, SumOrder order) {
  if (splits_units(plan)) {
    return slot_bytes_of_node(sharded_part(plan), mesh, order) +
           slot_bytes_of_node(whole_part(plan), Mesh(mesh.world(), 1), order);
  }
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
