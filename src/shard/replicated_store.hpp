// No sharding (DDP): every rank keeps all weights and moments; gradients are summed into blocks, then collected.
#pragma once

#include <lamina/device/device.hpp>
#include <vector>

#include "store_base.hpp"

namespace lamina {

class ReplicatedStore final : public StoreBase {
 public:
  ReplicatedStore(const StorePlan& plan, Device& device, Fabric& fabric);

  void gather(std::size_t unit) override { begin_gather(unit); }
  [[nodiscard]] std::span<const float> get(std::size_t unit) override;
  void release(std::size_t unit) override { begin_release(unit); }
  void reduce(std::size_t unit) override;
  void finish_gradients() override;
  void clear_gradients() override;
  [[nodiscard]] OptimizerShard optimizer_shard(std::size_t unit) override;

 private:
  [[nodiscard]] std::span<float> whole(const Buffer& buffer, std::size_t unit) const;  // padding included

  Buffer param_, exp_avg_, exp_avg_sq_, grad_;  // all units, whole, one after another
  std::vector<std::size_t> begins_;
  std::size_t total_ = 0;
};

}  // namespace lamina
