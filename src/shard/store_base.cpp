#include "store_base.hpp"

#include <algorithm>

#include <lamina/base/check.hpp>

#include <fmt/format.h>

namespace lamina {

StoreBase::StoreBase(const StorePlan& plan, Fabric& fabric)
    : fabric_(fabric), units_(plan.units.size()), prefetch_(plan.prefetch) {
  for (const UnitSpec& unit : plan.units) layouts_.emplace_back(unit, fabric.topology().world_size());
  const SlotPlan slots = slot_plan(plan, fabric.topology().world_size());
  fabric.allocate(slots);
  gradient_slot_used_.resize(static_cast<std::size_t>(slots.gradient_slots));
  counters_.gathers.resize(units_.size());
  counters_.reductions.resize(units_.size());
}

void StoreBase::begin_gather(std::size_t unit) {
  Unit& u = units_.at(unit);
  require(u.state == UnitState::sharded,
          fmt::format("gather of unit {} which is not sharded", layouts_[unit].unit().name));
  u.state = UnitState::gathering;
  u.gathered_version = u.version;
  ++counters_.gathers[unit];
  counters_.most_full_units = std::max(counters_.most_full_units, ++full_units_);
}

void StoreBase::check_gathered(std::size_t unit) {
  Unit& u = units_.at(unit);
  require(u.state != UnitState::sharded, fmt::format("get of unit {} without gather", layouts_[unit].unit().name));
  require(u.gathered_version == u.version,
          fmt::format("unit {} was gathered before its last update", layouts_[unit].unit().name));
  u.state = UnitState::full;
}

void StoreBase::begin_release(std::size_t unit) {
  Unit& u = units_.at(unit);
  require(u.state == UnitState::full, fmt::format("release of unit {} which is not full", layouts_[unit].unit().name));
  u.state = UnitState::sharded;
  --full_units_;
}

std::span<float> StoreBase::gradient(std::size_t unit) {
  Unit& u = units_.at(unit);
  const auto elements = static_cast<std::size_t>(layouts_[unit].elements());
  if (u.gradient_slot < 0) {
    // Round robin, so that a slot's last reduction has had the longest time to end; all ranks take the same.
    const std::size_t count = gradient_slot_used_.size();
    std::size_t slot = next_gradient_slot_;
    for (std::size_t tries = 0; gradient_slot_used_[slot]; slot = (slot + 1) % count) {
      require(++tries <= count, "all gradient slots are held");
    }
    gradient_slot_used_[slot] = true;
    next_gradient_slot_ = (slot + 1) % count;
    u.gradient_slot = static_cast<int>(slot);
    counters_.most_gradient_slots =
        std::max(counters_.most_gradient_slots,
                 static_cast<int>(std::count(gradient_slot_used_.begin(), gradient_slot_used_.end(), true)));
    const std::span<float> fresh = fabric_.gradient(u.gradient_slot);
    // Padding takes part in the reduction: it must not carry another unit's gradient.
    const auto padded = static_cast<std::size_t>(layouts_[unit].padded_elements());
    std::fill(fresh.begin() + static_cast<std::ptrdiff_t>(elements),
              fresh.begin() + static_cast<std::ptrdiff_t>(padded), 0.0F);
    u.gradient_data = fresh.first(elements);
  }
  return u.gradient_data;
}

void StoreBase::reduce_into(std::size_t unit, std::span<float> accumulator) {
  Unit& u = units_.at(unit);
  require(u.gradient_slot >= 0, fmt::format("reduce of unit {} without a gradient", layouts_[unit].unit().name));
  fabric_.reduce_scatter(u.gradient_slot, accumulator);
  gradient_slot_used_[static_cast<std::size_t>(u.gradient_slot)] = false;
  u.gradient_slot = -1;
  u.gradient_data = {};
  ++counters_.reductions[unit];
}

void StoreBase::mark_updated(std::size_t unit) { ++units_.at(unit).version; }

FlatRange StoreBase::counted_range(std::size_t unit) const { return layouts_.at(unit).owned_range(own_block()); }

}  // namespace lamina
