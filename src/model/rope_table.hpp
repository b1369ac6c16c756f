// Cosines and sines of the rotary embedding, with linear and llama3 scaling, computed in double.
#pragma once

#include <cstdint>
#include <vector>

#include <lamina/model/model_config.hpp>

namespace lamina {

// Radians per position of each of the head_dim/2 pairs. llama3: Meta's Llama 3.1 scheme: long wavelengths are stretched
// by `factor`, short ones kept, and those between blended.
[[nodiscard]] std::vector<double> rope_frequencies(const RopeConfig& rope, std::int64_t head_dim);

// [positions, 2*(head_dim/2)]: cosines then sines of each position (Ops::rope).
[[nodiscard]] std::vector<float> make_rope_table(const ModelConfig& config, std::int64_t positions);

}  // namespace lamina
