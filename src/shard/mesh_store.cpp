#include "mesh_store.hpp"

#include "split_store.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include <lamina/base/check.hpp>

namespace lamina {

namespace {

std::vector<FlatLayout> make_layouts(const StorePlan& plan, int world_size) {
  std::vector<FlatLayout> layouts;
  for (const UnitSpec& unit : plan.units) layouts.emplace_back(unit, world_size);
  return layouts;
}

void allocate(Fabric& fabric, const SlotPlan& plan) {
  if (plan.parameter_slots + plan.gradient_slots > 0) fabric.allocate(plan);
}

// Slots that callers may name; no parameter slots where a rank holds all weights: any name will do.
int parameter_slots(const StorePlan& plan, const Mesh& mesh) {
  const SlotPlans plans = slot_plans(plan, mesh);
  return mesh.shard_size() > 1 ? std::max(plans.world.parameter_slots, plans.shard.parameter_slots) : 0;
}
int gradient_slots(const StorePlan& plan, const Mesh& mesh) {
  const SlotPlans plans = slot_plans(plan, mesh);
  return std::max(plans.world.gradient_slots, plans.shard.gradient_slots);
}

std::span<float> cut(std::span<float> whole, FlatRange range) {
  return whole.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.length()));
}

void add(std::span<float> target, std::span<const float> source) {
  std::ranges::transform(target, source, target.begin(), std::plus<>());
}

}  // namespace

Pieces::Pieces(Device& device, const std::vector<std::int64_t>& lengths, std::string_view purpose) : begins_{0} {
  for (const std::int64_t length : lengths) begins_.push_back(begins_.back() + static_cast<std::size_t>(length));
  buffer_ = device.allocate_floats(begins_.back(), purpose);
}

MeshStore::MeshStore(const StorePlan& plan, Device& device, FabricSet& fabrics)
    : plan_(plan),
      fabrics_(fabrics),
      mesh_(fabrics.mesh()),
      layouts_(make_layouts(plan, mesh_.world().world_size())),
      tracker_(layouts_, parameter_slots(plan, mesh_), gradient_slots(plan, mesh_)),
      gradients_(static_cast<std::size_t>(gradient_slots(plan, mesh_))) {
  require(plan.shard_size == mesh_.shard_size(), "the store's plan and the mesh have the same shard groups");
  const SlotPlans slots = slot_plans(plan, mesh_);
  allocate(fabrics.world(), slots.world);
  if (mesh_.shard_size() > 1 && mesh_.replicas() > 1) {
    allocate(fabrics.shard(), slots.shard);
    allocate(fabrics.replica(), slots.replica);
  }
  if (mesh_.shard_size() > 1) {
    window_ = std::make_unique<SlotWindow>(fabrics.shard(), layouts_.size());
  } else {
    window_ = std::make_unique<ResidentWindow>(layouts_.size());
  }
  std::vector<std::int64_t> parts, blocks;
  for (std::size_t unit = 0; unit < layouts_.size(); ++unit) {
    parts.push_back(part_range(unit).length());
    blocks.push_back(block_range(unit).length());
  }
  const auto& optimized = plan_.optimizer_over_world ? blocks : parts;
  param_ = std::make_unique<Pieces>(device, parts, "parameters");
  if (plan_.moments > 0) exp_avg_ = std::make_unique<Pieces>(device, optimized, "first moments");
  if (plan_.moments > 1) exp_avg_sq_ = std::make_unique<Pieces>(device, second_lengths(), "second moments");
  if (plan_.ema) ema_ = std::make_unique<Pieces>(device, optimized, "averaged weights");
  sums_ = std::make_unique<Pieces>(device, sums_cover_part() ? parts : blocks, "gradient sums");
  if (plan_.local_sums) {
    std::vector<std::int64_t> whole;
    for (const FlatLayout& layout : layouts_) whole.push_back(layout.padded_elements());
    local_sums_ = std::make_unique<Pieces>(device, whole, "whole gradients");
  }
}

FlatRange MeshStore::part_range(std::size_t unit) const {
  const std::int64_t length = layouts_.at(unit).block_elements() * mesh_.replicas();
  return {mesh_.shard_index() * length, (mesh_.shard_index() + 1) * length};
}

FlatRange MeshStore::block_range(std::size_t unit) const {
  return layouts_.at(unit).block_range(mesh_.world().block_of(mesh_.world().rank()));
}

FlatRange MeshStore::optimizer_range(std::size_t unit) const {
  return plan_.optimizer_over_world ? block_range(unit) : part_range(unit);
}

std::vector<std::int64_t> MeshStore::second_lengths() const {
  std::vector<std::int64_t> lengths;
  for (std::size_t unit = 0; unit < layouts_.size(); ++unit) {
    const FlatRange range = optimizer_range(unit);
    lengths.push_back(plan_.second.empty() ? range.length() : plan_.second.at(unit).packed(range).length());
  }
  return lengths;
}

FlatRange MeshStore::counted_range(std::size_t unit) const {
  return layouts_.at(unit).owned_range(mesh_.world().block_of(mesh_.world().rank()));
}

std::span<float> MeshStore::block_of_part(std::size_t unit, std::span<float> part) const {
  const FlatRange block = block_range(unit);
  return part.subspan(static_cast<std::size_t>(block.begin - part_range(unit).begin),
                      static_cast<std::size_t>(block.length()));
}

std::span<float> MeshStore::summed_block(std::size_t unit) const {
  return sums_cover_part() ? block_of_part(unit, sums_->of(unit)) : sums_->of(unit);
}

void MeshStore::gather(std::size_t unit, std::size_t slot) {
  tracker_.begin_gather(unit, slot);
  order_.note(CollectiveKind::gather, unit);
  window_->gather(unit, static_cast<int>(slot), param_->of(unit));
  tracker_.end_gather(unit);
}

std::span<const float> MeshStore::weights(std::size_t unit) {
  tracker_.check_use(unit);
  return window_->full(unit).first(static_cast<std::size_t>(layouts_[unit].elements()));
}

void MeshStore::release(std::size_t unit) {
  tracker_.end_use(unit);
  window_->release(unit);
}

std::span<float> MeshStore::gradient(std::size_t unit, std::size_t slot) {
  const auto elements = static_cast<std::size_t>(layouts_.at(unit).elements());
  if (!tracker_.holds_gradient(unit, slot)) {
    tracker_.take_gradient_slot(unit, slot);
    const auto padded = static_cast<std::size_t>(layouts_[unit].padded_elements());
    gradients_[slot] = reducing_fabric().gradient(static_cast<int>(slot)).first(padded);
    // Padding takes part in the reduction: it must not carry another unit's gradient.
    const std::span<float> padding = gradients_[slot].subspan(elements);
    std::fill(padding.begin(), padding.end(), 0.0F);
  }
  return gradients_[slot].first(elements);
}

void MeshStore::reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) {
  require(tracker_.holds_gradient(unit, slot), "reduce of a unit without a gradient");
  order_.note(CollectiveKind::reduce, unit);
  if (local_sums_) add(cut(gradients_[slot], bucket), cut(local_sums_->of(unit), bucket));
  reducing_fabric().reduce_scatter(static_cast<int>(slot), bucket.begin, bucket.end,
                                   plan_.defer_replicas ? sums_->of(unit) : summed_block(unit));
  if (!completes) return;
  tracker_.give_gradient_slot(slot);
  tracker_.count_reduction(unit);
}

void MeshStore::accumulate(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) {
  require(local_sums_ != nullptr && tracker_.holds_gradient(unit, slot),
          "accumulate of a unit without a gradient or without whole sums");
  add(cut(local_sums_->of(unit), bucket), cut(gradients_[slot], bucket));
  if (completes) tracker_.give_gradient_slot(slot);
}

void MeshStore::reduce_across_replicas(std::size_t unit) {
  const std::span<float> part = sums_->of(unit);
  const std::span<float> slot = fabrics_.replica().gradient(0);
  std::copy(part.begin(), part.end(), slot.begin());
  const std::span<float> block = summed_block(unit);
  std::fill(block.begin(), block.end(), 0.0F);
  fabrics_.replica().reduce_scatter(0, 0, static_cast<std::int64_t>(part.size()), block);
}

void MeshStore::collect_from_replicas(std::size_t unit, std::span<float> part) {
  Fabric& replica = fabrics_.replica();
  const std::span<const float> full = replica.gather(0, block_of_part(unit, part));
  std::copy(full.begin(), full.end(), part.begin());
  replica.release(0);
}

void MeshStore::finish_gradient(std::size_t unit) {
  order_.note(CollectiveKind::finish_gradients, unit);
  if (plan_.defer_replicas) reduce_across_replicas(unit);
  if (!plan_.optimizer_over_world && mesh_.replicas() > 1) collect_from_replicas(unit, sums_->of(unit));
}

void MeshStore::clear_gradients() {
  std::ranges::fill(sums_->all(), 0.0F);
  if (local_sums_) std::ranges::fill(local_sums_->all(), 0.0F);
}

OptimizerShard MeshStore::optimizer_shard(std::size_t unit) {
  const auto kept = [unit](const auto& pieces) { return pieces ? pieces->of(unit) : std::span<float>(); };
  OptimizerShard shard{optimizer_range(unit), param_->of(unit), kept(exp_avg_), kept(exp_avg_sq_),
                       sums_->of(unit),       kept(ema_),       nullptr};
  if (plan_.optimizer_over_world) {
    shard.param = block_of_part(unit, shard.param);
    shard.grad = summed_block(unit);
  }
  if (!plan_.second.empty()) shard.second = &plan_.second[unit];
  return shard;
}

std::span<float> OptimizerShard::exp_avg_sq_of(FlatRange part) const {
  if (exp_avg_sq.empty()) return {};
  const PackedTensors whole;
  const PackedTensors& packing = second != nullptr ? *second : whole;
  const FlatRange packed = packing.packed(part);
  return exp_avg_sq.subspan(static_cast<std::size_t>(packed.begin - packing.before(range.begin)),
                            static_cast<std::size_t>(packed.length()));
}

void MeshStore::exchange(std::span<const FloatSend> sends, std::span<const FloatReceive> receives) {
  if (sends.empty() && receives.empty()) return;
  require(optimizer_group(plan_, mesh_).world_size() > 1, "an exchange has somebody to exchange with");
  (plan_.optimizer_over_world ? fabrics_.world() : fabrics_.shard()).exchange(sends, receives);
}

void MeshStore::publish(std::size_t unit) {
  order_.note(CollectiveKind::publish, unit);
  if (plan_.optimizer_over_world && mesh_.replicas() > 1) collect_from_replicas(unit, param_->of(unit));
  tracker_.new_version(unit);
}

std::unique_ptr<WeightStore> make_weight_store(const StorePlan& plan, Device& device, FabricSet& fabrics) {
  if (splits_units(plan)) return std::make_unique<SplitStore>(plan, device, fabrics);
  return std::make_unique<MeshStore>(plan, device, fabrics);
}

}  // namespace lamina
