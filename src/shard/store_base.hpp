// What all stores share: layouts, versions and states, gradient slots, counters.
#pragma once

#include <lamina/shard/weight_store.hpp>
#include <optional>
#include <vector>

namespace lamina {

class StoreBase : public WeightStore {
 public:
  StoreBase(const StorePlan& plan, Fabric& fabric);

  [[nodiscard]] std::size_t unit_count() const override { return layouts_.size(); }
  [[nodiscard]] const FlatLayout& layout(std::size_t unit) const override { return layouts_.at(unit); }
  [[nodiscard]] UnitState state(std::size_t unit) const override { return units_.at(unit).state; }
  [[nodiscard]] int prefetch() const override { return prefetch_; }
  [[nodiscard]] std::span<float> gradient(std::size_t unit) override;
  void mark_updated(std::size_t unit) override;
  [[nodiscard]] FlatRange counted_range(std::size_t unit) const override;
  [[nodiscard]] const StoreCounters& counters() const override { return counters_; }

 protected:
  struct Unit {
    UnitState state = UnitState::sharded;
    int parameter_slot = -1;
    std::span<const float> data;  // while FULL
    int gradient_slot = -1;
    std::span<float> gradient_data;
    std::uint64_t version = 0;           // of the weights
    std::uint64_t gathered_version = 0;  // of what was gathered
  };
  // State changes with their rules.
  void begin_gather(std::size_t unit);
  void check_gathered(std::size_t unit);  // GATHERING or FULL, and not stale -> FULL
  void begin_release(std::size_t unit);
  // Adds the unit's gradients of all ranks to `accumulator` (one block) and gives the slot back.
  void reduce_into(std::size_t unit, std::span<float> accumulator);

  [[nodiscard]] int own_block() const { return fabric_.topology().block_of(fabric_.topology().rank()); }

  Fabric& fabric_;
  std::vector<FlatLayout> layouts_;
  std::vector<Unit> units_;
  int prefetch_;

 private:
  std::vector<bool> gradient_slot_used_;
  std::size_t next_gradient_slot_ = 0;
  int full_units_ = 0;
  StoreCounters counters_;
};

}  // namespace lamina
