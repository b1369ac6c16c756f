// Full sharding (ZeRO-3): each rank keeps its block of every unit and gathers a unit only while it is computed.
#pragma once

#include <lamina/device/device.hpp>
#include <vector>

#include "store_base.hpp"

namespace lamina {

class ShardedStore final : public StoreBase {
 public:
  ShardedStore(const StorePlan& plan, Device& device, Fabric& fabric);

  void gather(std::size_t unit) override;
  [[nodiscard]] std::span<const float> get(std::size_t unit) override;
  void release(std::size_t unit) override;
  void reduce(std::size_t unit) override;
  void finish_gradients() override {}  // the accumulator holds the rank's block already
  void clear_gradients() override;
  [[nodiscard]] OptimizerShard optimizer_shard(std::size_t unit) override;

 private:
  [[nodiscard]] std::span<float> block(const Buffer& buffer, std::size_t unit) const;

  Buffer param_, exp_avg_, exp_avg_sq_, grad_;  // this rank's blocks, unit after unit
  std::vector<std::size_t> begins_;
  std::size_t total_ = 0;
  std::vector<bool> parameter_slot_used_;
};

}  // namespace lamina
