#include "split_store.hpp"

#include <algorithm>

namespace lamina {

SplitStore::SplitStore(const StorePlan& plan, Device& device, FabricSet& fabrics)
    : plan_(plan),
      mesh_(fabrics.mesh()),
      whole_fabrics_(fabrics.without_sharding()),
      sharded_(std::make_unique<MeshStore>(sharded_part(plan), device, fabrics)),
      whole_(std::make_unique<MeshStore>(whole_part(plan), device, whole_fabrics_)),
      sharded_exchange_(exchanges_once_a_step(sharded_part(plan), mesh_)),
      whole_exchange_(exchanges_once_a_step(whole_part(plan), whole_fabrics_.mesh())) {
  std::size_t sharded = 0, whole = 0;
  for (const bool is_whole : plan.whole_units) places_.push_back({is_whole, is_whole ? whole++ : sharded++});
}

void SplitStore::gather(std::size_t unit, std::size_t slot) {
  order_.note(CollectiveKind::gather, unit);
  // With keep_full a unit's slot is its number, which is another one in its own store.
  store(unit).gather(index(unit), plan_.keep_full ? index(unit) : slot);
}

void SplitStore::reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) {
  order_.note(CollectiveKind::reduce, unit);
  store(unit).reduce(index(unit), slot, bucket, completes);
}

void SplitStore::finish_gradient(std::size_t unit) {
  order_.note(CollectiveKind::finish_gradients, unit);
  if (places_.at(unit).whole ? whole_exchange_ : sharded_exchange_) store(unit).finish_gradient(index(unit));
}

void SplitStore::clear_gradients() {
  sharded_->clear_gradients();
  whole_->clear_gradients();
}

void SplitStore::clear_collective_order() {
  sharded_->clear_collective_order();
  whole_->clear_collective_order();
  order_.clear();
}

void SplitStore::publish(std::size_t unit) {
  order_.note(CollectiveKind::publish, unit);
  store(unit).publish(index(unit));
}

const StoreCounters& SplitStore::counters() const {
  counters_ = {};
  for (std::size_t unit = 0; unit < places_.size(); ++unit) {
    counters_.gathers.push_back(store(unit).counters().gathers[index(unit)]);
    counters_.reductions.push_back(store(unit).counters().reductions[index(unit)]);
  }
  for (const MeshStore* part : {sharded_.get(), whole_.get()}) {
    counters_.most_full_units = std::max(counters_.most_full_units, part->counters().most_full_units);
    counters_.most_gradient_slots = std::max(counters_.most_gradient_slots, part->counters().most_gradient_slots);
  }
  return counters_;
}

void SplitStore::interrupt() {
  sharded_->interrupt();
  whole_->interrupt();
}

}  // namespace lamina
