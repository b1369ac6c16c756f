// Two stores as one: units that are sharded, and units that stay whole on every rank (parallel.ignore).
#pragma once

#include "mesh_store.hpp"

#include <memory>
#include <vector>

namespace lamina {

class SplitStore final : public WeightStore {
 public:
  // `plan` has units of both kinds (splits_units).
  SplitStore(const StorePlan& plan, Device& device, FabricSet& fabrics);

  [[nodiscard]] std::size_t unit_count() const override { return places_.size(); }
  [[nodiscard]] const FlatLayout& layout(std::size_t unit) const override { return store(unit).layout(index(unit)); }
  void gather(std::size_t unit, std::size_t slot) override;
  [[nodiscard]] std::span<const float> weights(std::size_t unit) override { return store(unit).weights(index(unit)); }
  void release(std::size_t unit) override { store(unit).release(index(unit)); }
  [[nodiscard]] UnitState state(std::size_t unit) const override { return store(unit).state(index(unit)); }
  [[nodiscard]] std::span<float> gradient(std::size_t unit, std::size_t slot) override {
    return store(unit).gradient(index(unit), slot);
  }
  void reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override;
  void accumulate(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override {
    store(unit).accumulate(index(unit), slot, bucket, completes);
  }
  void finish_gradient(std::size_t unit) override;
  void clear_gradients() override;
  [[nodiscard]] OptimizerShard optimizer_shard(std::size_t unit) override {
    return store(unit).optimizer_shard(index(unit));
  }
  void publish(std::size_t unit) override;
  [[nodiscard]] int optimizer_rank() const override { return sharded_->optimizer_rank(); }
  [[nodiscard]] std::vector<FlatRange> optimizer_ranges(std::size_t unit) const override {
    return lamina::optimizer_ranges(plan_, mesh_, unit);
  }
  void exchange(std::span<const FloatSend> sends, std::span<const FloatReceive> receives) override {
    sharded_->exchange(sends, receives);
  }
  [[nodiscard]] FlatRange counted_range(std::size_t unit) const override {
    return store(unit).counted_range(index(unit));
  }
  [[nodiscard]] const StoreCounters& counters() const override;
  [[nodiscard]] const CollectiveOrder& collective_order() const override { return order_; }
  void clear_collective_order() override;
  void interrupt() override;

 private:
  [[nodiscard]] MeshStore& store(std::size_t unit) const { return places_.at(unit).whole ? *whole_ : *sharded_; }
  [[nodiscard]] std::size_t index(std::size_t unit) const { return places_.at(unit).index; }

  StorePlan plan_;
  const Mesh& mesh_;
  FabricSet whole_fabrics_;
  std::unique_ptr<MeshStore> sharded_, whole_;
  bool sharded_exchange_, whole_exchange_;  // once a step, see exchanges_once_a_step
  struct Place {
    bool whole = false;
    std::size_t index = 0;  // in its store
  };
  std::vector<Place> places_;
  CollectiveOrder order_;  // with the numbers of all units
  mutable StoreCounters counters_;
};

}  // namespace lamina
