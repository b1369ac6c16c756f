#include "unit_tracker.hpp"

#include <algorithm>

#include <lamina/base/check.hpp>

#include <fmt/format.h>

namespace lamina {

UnitTracker::UnitTracker(const std::vector<FlatLayout>& layouts, int parameter_slots, int gradient_slots)
    : layouts_(layouts),
      units_(layouts.size()),
      parameter_slots_(static_cast<std::size_t>(parameter_slots), nobody),
      gradient_slots_(static_cast<std::size_t>(gradient_slots), nobody) {
  counters_.gathers.resize(layouts.size());
  counters_.reductions.resize(layouts.size());
}

void UnitTracker::check(bool condition, std::size_t unit, const char* problem) const {
  require(condition, fmt::format("unit {}: {}", layouts_.at(unit).unit().name, problem));
}

void UnitTracker::begin_gather(std::size_t unit, std::size_t slot) {
  const std::lock_guard lock(mutex_);
  Unit& u = units_.at(unit);
  check(u.state == UnitState::sharded, unit, "gather while it is gathered already");
  if (!parameter_slots_.empty()) {
    check(slot < parameter_slots_.size() && parameter_slots_[slot] == nobody, unit,
          "gather into a slot that is in use");
    parameter_slots_[slot] = unit;
  }
  u.slot = slot;
  u.state = UnitState::gathering;
  u.gathered_version = u.version;
  ++counters_.gathers[unit];
  counters_.most_full_units = std::max(counters_.most_full_units, ++full_units_);
}

void UnitTracker::end_gather(std::size_t unit) {
  const std::lock_guard lock(mutex_);
  units_.at(unit).state = UnitState::full;
}

void UnitTracker::check_use(std::size_t unit) const {
  const std::lock_guard lock(mutex_);
  const Unit& u = units_.at(unit);
  check(u.state == UnitState::full, unit, "its weights are used while it is not full");
  check(u.gathered_version == u.version, unit, "it was gathered before its last update");
}

void UnitTracker::end_use(std::size_t unit) {
  const std::lock_guard lock(mutex_);
  Unit& u = units_.at(unit);
  check(u.state == UnitState::full, unit, "release while it is not full");
  u.state = UnitState::sharded;
  if (!parameter_slots_.empty()) parameter_slots_[u.slot] = nobody;
  --full_units_;
}

void UnitTracker::take_gradient_slot(std::size_t unit, std::size_t slot) {
  const std::lock_guard lock(mutex_);
  check(slot < gradient_slots_.size() && gradient_slots_[slot] == nobody, unit, "its gradient has no free slot");
  gradient_slots_[slot] = unit;
  const auto held = gradient_slots_.size() - static_cast<std::size_t>(std::ranges::count(gradient_slots_, nobody));
  counters_.most_gradient_slots = std::max(counters_.most_gradient_slots, static_cast<int>(held));
}

void UnitTracker::give_gradient_slot(std::size_t slot) {
  const std::lock_guard lock(mutex_);
  gradient_slots_.at(slot) = nobody;
}

bool UnitTracker::holds_gradient(std::size_t unit, std::size_t slot) const {
  const std::lock_guard lock(mutex_);
  return slot < gradient_slots_.size() && gradient_slots_[slot] == unit;
}

void UnitTracker::count_reduction(std::size_t unit) {
  const std::lock_guard lock(mutex_);
  ++counters_.reductions[unit];
}

void UnitTracker::new_version(std::size_t unit) {
  const std::lock_guard lock(mutex_);
  ++units_.at(unit).version;
}

UnitState UnitTracker::state(std::size_t unit) const {
  const std::lock_guard lock(mutex_);
  return units_.at(unit).state;
}

}  // namespace lamina
