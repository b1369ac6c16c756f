#include "sharded_store.hpp"

#include <algorithm>

#include <lamina/base/check.hpp>

namespace lamina {

ShardedStore::ShardedStore(const StorePlan& plan, Device& device, Fabric& fabric)
    : StoreBase(plan, fabric), parameter_slot_used_(static_cast<std::size_t>(plan.prefetch + 1)) {
  for (const FlatLayout& unit : layouts_) {
    begins_.push_back(total_);
    total_ += static_cast<std::size_t>(unit.block_elements());
  }
  for (Buffer* buffer : {&param_, &exp_avg_, &exp_avg_sq_, &grad_}) *buffer = device.allocate_floats(total_, "shards");
}

std::span<float> ShardedStore::block(const Buffer& buffer, std::size_t unit) const {
  return {buffer.floats() + begins_[unit], static_cast<std::size_t>(layouts_[unit].block_elements())};
}

void ShardedStore::gather(std::size_t unit) {
  begin_gather(unit);
  const auto free = std::find(parameter_slot_used_.begin(), parameter_slot_used_.end(), false);
  require(free != parameter_slot_used_.end(), "all parameter slots are in use");
  *free = true;
  units_[unit].parameter_slot = static_cast<int>(free - parameter_slot_used_.begin());
  fabric_.gather_start(units_[unit].parameter_slot, block(param_, unit));
}

std::span<const float> ShardedStore::get(std::size_t unit) {
  const bool waiting = state(unit) == UnitState::gathering;
  check_gathered(unit);
  if (waiting) units_[unit].data = fabric_.gather_finish(units_[unit].parameter_slot);
  return units_[unit].data.first(static_cast<std::size_t>(layouts_[unit].elements()));
}

void ShardedStore::release(std::size_t unit) {
  begin_release(unit);
  fabric_.release(units_[unit].parameter_slot);
  parameter_slot_used_[static_cast<std::size_t>(units_[unit].parameter_slot)] = false;
  units_[unit].parameter_slot = -1;
}

void ShardedStore::reduce(std::size_t unit) { reduce_into(unit, block(grad_, unit)); }

void ShardedStore::clear_gradients() { std::fill_n(grad_.floats(), total_, 0.0F); }

OptimizerShard ShardedStore::optimizer_shard(std::size_t unit) {
  return {layouts_.at(unit).block_range(own_block()), block(param_, unit), block(exp_avg_, unit),
          block(exp_avg_sq_, unit), block(grad_, unit)};
}

}  // namespace lamina
