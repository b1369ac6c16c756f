// A whole model in the memory of one device: the plan and one flat buffer a unit (FlatLayout of its UnitSpec with one
// shard).
#pragma once

#include <cstdint>
#include <vector>

#include <lamina/device/device.hpp>
#include <lamina/model/model_plan.hpp>

namespace lamina {

struct LoadedModel {
  ModelPlan plan;
  std::vector<Buffer> units;  // one a unit of the plan, padded_elements() floats

  [[nodiscard]] const float* weights(const Stage& stage) const { return units[stage.unit].floats() + stage.offset; }
};

// Zeroed buffers for all units of `config`. Throws UsageError when the device has not enough memory.
[[nodiscard]] LoadedModel allocate_model(const ModelConfig& config, Device& device);

}  // namespace lamina
