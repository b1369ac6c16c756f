// Random initial weights: a pure function of (seed, tensor name, element index), so any rank can make its own slice and
// all world sizes start from the same bits.
#pragma once

#include <cstdint>
#include <span>

#include <lamina/model/model_config.hpp>
#include <lamina/shard/unit_spec.hpp>

namespace lamina {

// Elements [first, first + out.size()) of `tensor`: norms 1, biases 0, matrices normal(0, initializer_range); the
// residual projections (attention output and MLP down) are scaled by 1/sqrt(2 * layers) (Radford et al. 2019).
void init_tensor(const ModelConfig& config, std::uint64_t seed, const TensorSpec& tensor, std::int64_t first,
                 std::span<float> out);

}  // namespace lamina
