// The life of units in a store: states, versions, slots, and what of it was counted.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include <lamina/shard/weight_store.hpp>

namespace lamina {

// All functions may be called from any thread.
class UnitTracker {
 public:
  // parameter_slots 0: weights are resident and gathers need no slot.
  UnitTracker(const std::vector<FlatLayout>& layouts, int parameter_slots, int gradient_slots);

  void begin_gather(std::size_t unit, std::size_t slot);  // SHARDED -> GATHERING
  void end_gather(std::size_t unit);                      // GATHERING -> FULL
  void check_use(std::size_t unit) const;                 // FULL and not stale
  void end_use(std::size_t unit);                         // FULL -> SHARDED
  void take_gradient_slot(std::size_t unit, std::size_t slot);
  void give_gradient_slot(std::size_t slot);
  [[nodiscard]] bool holds_gradient(std::size_t unit, std::size_t slot) const;
  void count_reduction(std::size_t unit);
  void new_version(std::size_t unit);

  [[nodiscard]] UnitState state(std::size_t unit) const;
  // While no other thread is at work.
  [[nodiscard]] const StoreCounters& counters() const { return counters_; }

 private:
  struct Unit {
    UnitState state = UnitState::sharded;
    std::uint64_t version = 0;           // of the weights
    std::uint64_t gathered_version = 0;  // of what was gathered
    std::size_t slot = 0;
  };
  void check(bool condition, std::size_t unit, const char* problem) const;

  const std::vector<FlatLayout>& layouts_;
  std::vector<Unit> units_;
  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);
  std::vector<std::size_t> parameter_slots_, gradient_slots_;  // the unit in each, or nobody
  int full_units_ = 0;
  mutable std::mutex mutex_;
  StoreCounters counters_;
};

}  // namespace lamina
