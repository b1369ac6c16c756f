#include "replicated_store.hpp"

#include <algorithm>

namespace lamina {

ReplicatedStore::ReplicatedStore(const StorePlan& plan, Device& device, Fabric& fabric) : StoreBase(plan, fabric) {
  for (const FlatLayout& unit : layouts_) {
    begins_.push_back(total_);
    total_ += static_cast<std::size_t>(unit.padded_elements());
  }
  for (Buffer* buffer : {&param_, &exp_avg_, &exp_avg_sq_, &grad_}) *buffer = device.allocate_floats(total_, "weights");
}

std::span<float> ReplicatedStore::whole(const Buffer& buffer, std::size_t unit) const {
  return {buffer.floats() + begins_[unit], static_cast<std::size_t>(layouts_[unit].padded_elements())};
}

std::span<const float> ReplicatedStore::get(std::size_t unit) {
  check_gathered(unit);
  return whole(param_, unit).first(static_cast<std::size_t>(layouts_[unit].elements()));
}

void ReplicatedStore::reduce(std::size_t unit) {
  const FlatRange own = layouts_.at(unit).block_range(own_block());
  reduce_into(unit,
              whole(grad_, unit).subspan(static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.length())));
}

void ReplicatedStore::finish_gradients() {
  // Each rank has summed its own block only: collect the others' through the parameter slot.
  constexpr int slot = 0;
  for (std::size_t unit = 0; unit < unit_count(); ++unit) {
    const FlatRange own = layouts_[unit].block_range(own_block());
    const std::span<float> grad = whole(grad_, unit);
    fabric_.gather_start(slot,
                         grad.subspan(static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.length())));
    const std::span<const float> full = fabric_.gather_finish(slot);
    std::copy(full.begin(), full.end(), grad.begin());
    fabric_.release(slot);
  }
}

void ReplicatedStore::clear_gradients() { std::fill_n(grad_.floats(), total_, 0.0F); }

OptimizerShard ReplicatedStore::optimizer_shard(std::size_t unit) {
  return {{0, layouts_.at(unit).padded_elements()},
          whole(param_, unit),
          whole(exp_avg_, unit),
          whole(exp_avg_sq_, unit),
          whole(grad_, unit)};
}

}  // namespace lamina
