// Keys that every family reads the same way.
#pragma once

#include "../config_reader.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include <lamina/model/model_config.hpp>

namespace lamina {

// What transformers assumes when the file does not name the id.
struct TokenIdDefaults {
  std::optional<std::int64_t> bos, eos;
};

// bos_token_id and eos_token_id: a number, a list, or null for none. A default outside the vocabulary counts as none.
void read_token_ids(const ConfigReader& json, ModelConfig& config, const TokenIdDefaults& defaults);

// The largest of the dropout probabilities under `keys`; each must lie in [0, 1).
[[nodiscard]] double read_dropout(const ConfigReader& json, std::initializer_list<std::string_view> keys);

}  // namespace lamina
