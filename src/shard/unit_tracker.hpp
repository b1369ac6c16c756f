// The life of units in a store: states, versions, slots, and what of it was counted.
#pragma once

#include <span>
#include <vector>

#include <lamina/shard/weight_store.hpp>

namespace lamina {

// A pool of numbered slots.
class SlotPool {
 public:
  explicit SlotPool(int count) : used_(static_cast<std::size_t>(count)) {}
  // The next free slot, round robin, so that a slot's last use is as old as can be; every rank takes the same. Throws
  // InternalError when all are held.
  [[nodiscard]] int take();
  void give_back(int slot) { used_[static_cast<std::size_t>(slot)] = false; }
  [[nodiscard]] int held() const;

 private:
  std::vector<bool> used_;
  std::size_t next_ = 0;
};

class UnitTracker {
 public:
  explicit UnitTracker(const std::vector<FlatLayout>& layouts);

  void begin_gather(std::size_t unit);  // SHARDED -> GATHERING
  bool begin_use(std::size_t unit);     // GATHERING or FULL, and not stale -> FULL; true if it was GATHERING
  void end_use(std::size_t unit);       // FULL -> SHARDED
  void count_reduction(std::size_t unit) { ++counters_.reductions[unit]; }
  void count_gradient_slots(int held);
  void new_version(std::size_t unit) { ++units_.at(unit).version; }

  [[nodiscard]] UnitState state(std::size_t unit) const { return units_.at(unit).state; }
  [[nodiscard]] const StoreCounters& counters() const { return counters_; }

 private:
  struct Unit {
    UnitState state = UnitState::sharded;
    std::uint64_t version = 0;           // of the weights
    std::uint64_t gathered_version = 0;  // of what was gathered
  };
  void check(bool condition, std::size_t unit, const char* problem) const;

  const std::vector<FlatLayout>& layouts_;
  std::vector<Unit> units_;
  int full_units_ = 0;
  StoreCounters counters_;
};

}  // namespace lamina
