#include <set>

#include <lamina/comm/traffic.hpp>
#include <lamina/shard/flat_layout.hpp>
#include <lamina/train/step_plan.hpp>

namespace lamina {

namespace {

void mark_uses(std::vector<Visit>& visits, const ModelPlan& plan) {
  Visit* last = nullptr;  // the latest visit that uses a unit other than the root
  for (Visit& visit : visits) {
    if (!visit.needs_weights || visit.stage.unit == plan.root) continue;
    visit.begins_use = last == nullptr || last->stage.unit != visit.stage.unit;
    if (last != nullptr) last->ends_use = visit.begins_use;
    last = &visit;
  }
  if (last != nullptr) last->ends_use = true;
}

void mark_gradients(std::vector<Visit>& visits) {
  std::set<std::size_t> written_later;
  for (auto visit = visits.rbegin(); visit != visits.rend(); ++visit) {
    if (visit->pass == Pass::forward && visit->stage.kind != StageKind::head) continue;
    visit->ends_gradient = written_later.insert(visit->stage.unit).second;
  }
}

}  // namespace

std::vector<Visit> visits_of(const ModelPlan& plan, bool gradients) {
  std::vector<Visit> visits;
  for (const Stage& stage : plan.stages) visits.push_back({stage, Pass::forward});
  if (gradients) {
    for (std::size_t i = plan.stages.size() - 1; i-- > 0;) {
      visits.push_back({plan.stages[i], Pass::backward, plan.stages[i].backward_needs_weights});
    }
    mark_gradients(visits);
  }
  mark_uses(visits, plan);
  return visits;
}

std::vector<std::size_t> uses_of(const std::vector<Visit>& visits) {
  std::vector<std::size_t> uses;
  for (const Visit& visit : visits) {
    if (visit.begins_use) uses.push_back(visit.stage.unit);
  }
  return uses;
}

std::vector<UnitTraffic> micro_step_traffic(const ModelPlan& plan, bool keep_full) {
  std::vector<UnitTraffic> traffic(plan.units.size(), UnitTraffic{0, 1});
  for (const std::size_t unit : uses_of(visits_of(plan, true))) {
    traffic[unit].gathers = keep_full ? 1 : traffic[unit].gathers + 1;
  }
  if (plan.root) traffic[*plan.root].gathers = 1;
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
