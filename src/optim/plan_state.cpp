#include <algorithm>

#include <lamina/optim/muon_plan.hpp>
#include <lamina/optim/optimizer.hpp>

namespace lamina {

std::string_view name_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::adam:
      return "adam";
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::lion:
      return "lion";
    case OptimizerKind::muon:
      return "muon";
  }
  return "?";
}

int moment_count(const OptimSection& optim) {
  if (optim.kind == OptimizerKind::sgd) return optim.momentum == 0 ? 0 : 1;
  return optim.kind == OptimizerKind::lion ? 1 : 2;
}

void plan_state(StorePlan& plan, const OptimSection& optim) {
  plan.moments = moment_count(optim);
  plan.ema = optim.ema_decay > 0;
  plan.second.clear();
  if (optim.kind != OptimizerKind::muon) return;
  for (const UnitSpec& unit : plan.units) {
    std::vector<bool> kept;
    for (const TensorSpec& tensor : unit.tensors) kept.push_back(!tensor.block_matrix);
    plan.second.emplace_back(unit, std::move(kept));
  }
}

namespace {

MuonPlan muon_plan(const StorePlan& plan, const Mesh& mesh) {
  std::vector<std::vector<FlatRange>> ranges;
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) ranges.push_back(optimizer_ranges(plan, mesh, unit));
  return {plan.units, std::move(ranges)};
}

}  // namespace

UpdateNeeds update_needs(const OptimSection& optim, const StorePlan& plan, const Mesh& mesh) {
  UpdateNeeds needs;
  if (optim.kind != OptimizerKind::muon) return needs;
  const MuonPlan muon = muon_plan(plan, mesh);
  const Topology& group = optimizer_group(plan, mesh);
  const auto bytes = [&](int rank) { return static_cast<std::uint64_t>(muon.workspace(rank)) * sizeof(float); };
  needs.bytes = bytes(group.rank());
  for (int rank = 0; rank < muon.ranks(); ++rank) needs.most_bytes = std::max(needs.most_bytes, bytes(rank));
  needs.floats_sent = muon.floats_sent(group.rank(), [&](int rank) { return group.node_of(rank) != group.node(); });
  return needs;
}

}  // namespace lamina
