// Named fp32 tensors that can be read piece by piece, wherever they lie: a checkpoint's shards or a Hugging Face
// folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lamina/shard/unit_spec.hpp>

namespace lamina {

class TensorSource {
 public:
  TensorSource() = default;
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;
  virtual ~TensorSource() = default;

  // Each tensor once, under its own name; aliases name further names of the same tensor.
  [[nodiscard]] virtual const std::vector<TensorSpec>& tensors() const = 0;
  // Elements [first, first + out.size()) of tensor `index`. Throws DataError or CheckpointError.
  virtual void read(std::size_t index, std::int64_t first, std::span<float> out) = 0;
};

}  // namespace lamina
