// The store of every strategy: parts of units on a mesh of ranks.
//
// Three nested ranges of a unit matter to a rank. Its *part* (1 / shard_size): the parameters it keeps. Its *block* (1
// / world): what it sums gradients for, and what it stands for when every element counts once. Its *optimizer range*:
// the part, or with the optimizer divided among all ranks the block. Ranks of a replica group have the same part and
// different blocks of it.
#pragma once

#include "parameter_window.hpp"
#include "unit_tracker.hpp"

#include <memory>
#include <vector>

#include <lamina/device/device.hpp>

namespace lamina {

// A buffer that holds a piece of every unit, one after another.
class Pieces {
 public:
  Pieces(Device& device, const std::vector<std::int64_t>& lengths, std::string_view purpose);
  [[nodiscard]] std::span<float> of(std::size_t unit) const {
    return {buffer_.floats() + begins_[unit], begins_[unit + 1] - begins_[unit]};
  }
  [[nodiscard]] std::span<float> all() const { return {buffer_.floats(), begins_.back()}; }

 private:
  std::vector<std::size_t> begins_;
  Buffer buffer_;
};

class MeshStore final : public WeightStore {
 public:
  MeshStore(const StorePlan& plan, Device& device, FabricSet& fabrics);

  [[nodiscard]] std::size_t unit_count() const override { return layouts_.size(); }
  [[nodiscard]] const FlatLayout& layout(std::size_t unit) const override { return layouts_.at(unit); }
  void gather(std::size_t unit, std::size_t slot) override;
  [[nodiscard]] std::span<const float> weights(std::size_t unit) override;
  void release(std::size_t unit) override;
  [[nodiscard]] UnitState state(std::size_t unit) const override { return tracker_.state(unit); }
  [[nodiscard]] std::span<float> gradient(std::size_t unit, std::size_t slot) override;
  void reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override;
  void accumulate(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override;
  void finish_gradient(std::size_t unit) override;
  void clear_gradients() override;
  [[nodiscard]] OptimizerShard optimizer_shard(std::size_t unit) override;
  void publish(std::size_t unit) override;
  [[nodiscard]] int optimizer_rank() const override { return optimizer_group(plan_, mesh_).rank(); }
  [[nodiscard]] std::vector<FlatRange> optimizer_ranges(std::size_t unit) const override {
    return lamina::optimizer_ranges(plan_, mesh_, unit);
  }
  void exchange(std::span<const FloatSend> sends, std::span<const FloatReceive> receives) override;
  [[nodiscard]] FlatRange counted_range(std::size_t unit) const override;
  [[nodiscard]] const StoreCounters& counters() const override { return tracker_.counters(); }
  [[nodiscard]] const CollectiveOrder& collective_order() const override { return order_; }
  void clear_collective_order() override { order_.clear(); }
  void interrupt() override { fabrics_.interrupt(); }

 private:
  [[nodiscard]] FlatRange part_range(std::size_t unit) const;
  [[nodiscard]] FlatRange block_range(std::size_t unit) const;
  [[nodiscard]] FlatRange optimizer_range(std::size_t unit) const;
  [[nodiscard]] std::vector<std::int64_t> second_lengths() const;
  // The rank's block inside a piece that holds the part.
  [[nodiscard]] std::span<float> block_of_part(std::size_t unit, std::span<float> part) const;
  [[nodiscard]] bool sums_cover_part() const { return !plan_.optimizer_over_world || plan_.defer_replicas; }
  [[nodiscard]] std::span<float> summed_block(std::size_t unit) const;
  [[nodiscard]] Fabric& reducing_fabric() { return plan_.defer_replicas ? fabrics_.shard() : fabrics_.world(); }
  // Every replica's block of `part`, from the rank that has it.
  void collect_from_replicas(std::size_t unit, std::span<float> part);
  void reduce_across_replicas(std::size_t unit);

  StorePlan plan_;
  FabricSet& fabrics_;
  const Mesh& mesh_;
  std::vector<FlatLayout> layouts_;
  UnitTracker tracker_;
  CollectiveOrder order_;
  std::unique_ptr<ParameterWindow> window_;
  std::vector<std::span<float>> gradients_;  // by gradient slot that is held: of its unit, padding included
  std::unique_ptr<Pieces> param_, exp_avg_, exp_avg_sq_, ema_, sums_;  // moments and average: only those of the plan
  std::unique_ptr<Pieces> local_sums_;                                 // whole units; only if planned
};

}  // namespace lamina
