#include <lamina/comm/traffic.hpp>
#include <lamina/train/step_plan.hpp>

namespace lamina {

std::vector<UnitTraffic> micro_step_traffic(const ModelPlan& plan) {
  std::vector<UnitTraffic> traffic(plan.units.size());
  for (const Stage& stage : plan.stages) {
    traffic[stage.unit].gathers += stage.kind == StageKind::block && stage.backward_needs_weights ? 2 : 1;
    traffic[stage.unit].reductions = 1;
  }
  return traffic;
}

std::uint64_t floats_sent_by_step(const ModelPlan& plan, bool sharded, const Topology& topology, SumOrder order,
                                  std::int64_t micro_steps) {
  std::uint64_t floats = 0;
  const std::vector<UnitTraffic> traffic = micro_step_traffic(plan);
  const auto times = static_cast<std::uint64_t>(micro_steps);
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
    const std::int64_t block = FlatLayout(plan.units[unit], topology.world_size()).block_elements();
    const std::uint64_t gather = floats_sent_by_gather(topology, block);
    floats += times * traffic[unit].reductions * floats_sent_by_reduction(topology, order, block);
    // Replicated weights are never gathered; their summed gradients are, once a step.
    floats += sharded ? times * traffic[unit].gathers * gather : gather;
  }
  return floats;
}

}  // namespace lamina
