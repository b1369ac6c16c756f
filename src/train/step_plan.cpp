#include <algorithm>

#include <lamina/base/error.hpp>
#include <lamina/comm/traffic.hpp>
#include <lamina/shard/flat_layout.hpp>
#include <lamina/train/step_plan.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::uint64_t most_buckets = 2'000'000;  // of a step: some hundred megabytes of schedule

// Before anything of that size is made.
void refuse_endless_schedules(const ScheduleShape& shape) {
  std::uint64_t buckets = 0;  // of a micro-step
  for (const ScheduledUnit& unit : shape.units) buckets += unit.buckets;
  const std::uint64_t units = shape.units.size();
  if (buckets <= most_buckets / shape.micro_steps) return;
  if (units > most_buckets / shape.micro_steps) {
    throw UsageError(one_line(fmt::format("train.global_batch makes {} micro-steps of a step", shape.micro_steps),
                              fmt::format("a schedule holds at most {} for {} units", most_buckets / units, units),
                              "lower train.global_batch, raise train.micro_batch or use more ranks"));
  }
  throw UsageError(one_line(
      fmt::format("parallel.bucket_mb cuts the gradients of a step into {} x {} buckets", shape.micro_steps, buckets),
      fmt::format("a schedule holds at most {}", most_buckets), "raise parallel.bucket_mb"));
}

ScheduleShape common_shape(const ModelPlan& plan, const StorePlan& store, const Mesh& mesh, bool overlap) {
  ScheduleShape shape;
  for (const Stage& stage : plan.stages)
    shape.stages.push_back({stage.unit, stage.backward_needs_weights, stage.offset});
  for (const UnitSpec& unit : plan.units) {
    const std::int64_t elements = FlatLayout(unit, mesh.world().world_size()).padded_elements();
    const std::int64_t bucket = store.bucket_elements > 0 ? std::min(store.bucket_elements, elements) : elements;
    shape.units.push_back({elements, static_cast<std::size_t>((elements + bucket - 1) / bucket)});
  }
  shape.root = plan.root;
  shape.prefetch = static_cast<std::size_t>(store.prefetch);
  shape.prefetch_backward = static_cast<std::size_t>(store.prefetch_backward);
  shape.gradient_slots = static_cast<std::size_t>(store.gradient_slots);
  shape.keep_full = store.keep_full;
  shape.load = true;
  shape.overlap = overlap;
  return shape;
}

}  // namespace

StoreUnits store_units(const ModelPlan& plan) {
  // The embedding and the head in one unit (tied, or both in the root) with other units between them.
  const std::size_t first = plan.stages.front().unit, last = plan.stages.back().unit;
  const bool others = std::ranges::any_of(plan.stages, [&](const Stage& stage) { return stage.unit != first; });
  return {plan.units, plan.root ? 1 : 0, first == last && others ? 1 : 0};
}

ScheduleShape training_shape(const ModelPlan& plan, const StorePlan& store, const Mesh& mesh, std::int64_t micro_steps,
                             bool overlap) {
  ScheduleShape shape = common_shape(plan, store, mesh, overlap);
  shape.micro_steps = static_cast<std::size_t>(micro_steps);
  shape.reduce_last_only = store.local_sums;
  shape.finish = exchanges_once_a_step(store, mesh);
  refuse_endless_schedules(shape);
  return shape;
}

ScheduleShape evaluation_shape(const ModelPlan& plan, const StorePlan& store, const Mesh& mesh, bool overlap) {
  ScheduleShape shape = common_shape(plan, store, mesh, overlap);
  shape.gradients = false;
  return shape;
}

std::vector<UnitTraffic> traffic_of(const ScheduleShape& shape) {
  std::vector<UnitTraffic> traffic(shape.units.size());
  for (const Operation& operation : step_schedule(shape)) {
    if (operation.kind == OperationKind::gather) ++traffic[operation.unit].gathers;
    if (operation.kind != OperationKind::reduce) continue;
    ++traffic[operation.unit].buckets;
    if (operation.completes) ++traffic[operation.unit].reductions;
  }
  return traffic;
}

std::uint64_t floats_sent_by_step(const ModelPlan& plan, const StorePlan& store, const Mesh& mesh, SumOrder order,
                                  std::int64_t micro_steps) {
  std::uint64_t floats = 0;
  const std::vector<UnitTraffic> traffic = traffic_of(training_shape(plan, store, mesh, micro_steps, true));
  const Topology& replicas = mesh.shard_size() > 1 ? mesh.replica_group() : mesh.world();
  const bool splits = splits_units(store);
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
    const std::int64_t block = FlatLayout(plan.units[unit], mesh.world().world_size()).block_elements();
    const std::int64_t part = block * mesh.replicas();
    if (splits && store.whole_units[unit]) {
      floats += traffic[unit].reductions * floats_sent_by_reduction(mesh.world(), order, block) +
                floats_sent_by_gather(mesh.world(), block);
      continue;
    }
    if (mesh.shard_size() > 1) floats += traffic[unit].gathers * floats_sent_by_gather(mesh.shard_group(), part);
    const std::uint64_t reduction = store.defer_replicas ? floats_sent_by_reduction(mesh.shard_group(), order, part)
                                                         : floats_sent_by_reduction(mesh.world(), order, block);
    floats += traffic[unit].reductions * reduction;
    if (store.defer_replicas) floats += floats_sent_by_reduction(replicas, order, block);
    // Replicas collect each other's gradients, or with a divided optimizer each other's updated weights.
    if (mesh.replicas() > 1) floats += floats_sent_by_gather(replicas, block);
  }
  return floats;
}

}  // namespace lamina
