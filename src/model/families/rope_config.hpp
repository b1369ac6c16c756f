// Reads rotary embedding settings in both schemas: rope_theta + rope_scaling, and transformers v5's rope_parameters.
#pragma once

#include "../config_reader.hpp"

#include <cstdint>

#include <lamina/model/model_config.hpp>

namespace lamina {

// `max_positions` is llama3's default for original_max_position_embeddings, as in transformers. Throws DataError for
// rope types other than default, linear and llama3, for keys that do not belong to the type, and for schemas that
// contradict each other.
[[nodiscard]] RopeConfig parse_rope(const ConfigReader& json, std::int64_t max_positions);

}  // namespace lamina
