#include <lamina/comm/traffic.hpp>
#include <lamina/shard/flat_layout.hpp>
#include <lamina/train/step_plan.hpp>

namespace lamina {

std::vector<UnitTraffic> micro_step_traffic(const ModelPlan& plan, bool keep_full) {
  std::vector<UnitTraffic> traffic(plan.units.size());
  for (const Stage& stage : plan.stages) {
    UnitTraffic& unit = traffic[stage.unit];
    unit.gathers += stage.kind == StageKind::block && stage.backward_needs_weights ? 2 : 1;
    if (keep_full) unit.gathers = 1;
    unit.reductions = 1;
  }
  return traffic;
}

std::uint64_t floats_sent_by_step(const ModelPlan& plan, const StorePlan& store, const Mesh& mesh, SumOrder order,
                                  std::int64_t micro_steps) {
  std::uint64_t floats = 0;
  const std::vector<UnitTraffic> traffic = micro_step_traffic(plan, store.keep_full);
  const auto times = static_cast<std::uint64_t>(micro_steps);
  const Topology& replicas = mesh.shard_size() > 1 ? mesh.replica_group() : mesh.world();
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
    const std::int64_t block = FlatLayout(plan.units[unit], mesh.world().world_size()).block_elements();
    const std::int64_t part = block * mesh.replicas();
    if (mesh.shard_size() > 1)
      floats += times * traffic[unit].gathers * floats_sent_by_gather(mesh.shard_group(), part);
    const std::uint64_t reduction = store.defer_replicas ? floats_sent_by_reduction(mesh.shard_group(), order, part)
                                                         : floats_sent_by_reduction(mesh.world(), order, block);
    floats += times * traffic[unit].reductions * reduction;
    if (store.defer_replicas) floats += floats_sent_by_reduction(replicas, order, block);
    // Replicas collect each other's gradients, or with a divided optimizer each other's updated weights.
    if (mesh.replicas() > 1) floats += floats_sent_by_gather(replicas, block);
  }
  return floats;
}

}  // namespace lamina
