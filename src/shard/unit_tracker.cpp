#include "unit_tracker.hpp"

#include <algorithm>

#include <lamina/base/check.hpp>

#include <fmt/format.h>

namespace lamina {

int SlotPool::take() {
  for (std::size_t tries = 0; tries < used_.size(); ++tries) {
    const std::size_t slot = (next_ + tries) % used_.size();
    if (used_[slot]) continue;
    used_[slot] = true;
    next_ = (slot + 1) % used_.size();
    return static_cast<int>(slot);
  }
  require(false, "all slots are held");
  return -1;
}

int SlotPool::held() const { return static_cast<int>(std::count(used_.begin(), used_.end(), true)); }

UnitTracker::UnitTracker(const std::vector<FlatLayout>& layouts) : layouts_(layouts), units_(layouts.size()) {
  counters_.gathers.resize(layouts.size());
  counters_.reductions.resize(layouts.size());
}

void UnitTracker::check(bool condition, std::size_t unit, const char* problem) const {
  require(condition, fmt::format("unit {}: {}", layouts_.at(unit).unit().name, problem));
}

void UnitTracker::begin_gather(std::size_t unit) {
  Unit& u = units_.at(unit);
  check(u.state == UnitState::sharded, unit, "gather while it is gathered already");
  u.state = UnitState::gathering;
  u.gathered_version = u.version;
  ++counters_.gathers[unit];
  counters_.most_full_units = std::max(counters_.most_full_units, ++full_units_);
}

bool UnitTracker::begin_use(std::size_t unit) {
  Unit& u = units_.at(unit);
  check(u.state != UnitState::sharded, unit, "get without gather");
  check(u.gathered_version == u.version, unit, "it was gathered before its last update");
  const bool was_gathering = u.state == UnitState::gathering;
  u.state = UnitState::full;
  return was_gathering;
}

void UnitTracker::end_use(std::size_t unit) {
  Unit& u = units_.at(unit);
  check(u.state == UnitState::full, unit, "release while it is not full");
  u.state = UnitState::sharded;
  --full_units_;
}

void UnitTracker::count_gradient_slots(int held) {
  counters_.most_gradient_slots = std::max(counters_.most_gradient_slots, held);
}

}  // namespace lamina
