#include "shared_keys.hpp"

#include <algorithm>

namespace lamina {
namespace {

std::vector<std::int64_t> ids_or(const ConfigReader& json, std::string_view key, std::optional<std::int64_t> fallback,
                                 std::int64_t vocab_size) {
  if (json.names(key)) return json.token_ids(key);
  if (fallback && *fallback < vocab_size) return {*fallback};
  return {};
}

}  // namespace

void read_token_ids(const ConfigReader& json, ModelConfig& config, const TokenIdDefaults& defaults) {
  const auto bos = ids_or(json, "bos_token_id", defaults.bos, config.vocab_size);
  if (!bos.empty()) config.bos_id = bos.front();
  config.eos_ids = ids_or(json, "eos_token_id", defaults.eos, config.vocab_size);
  if (!config.eos_ids.empty()) config.eos_id = config.eos_ids.front();
}

double read_dropout(const ConfigReader& json, std::initializer_list<std::string_view> keys) {
  double largest = 0;
  for (const std::string_view key : keys) {
    const double value = json.non_negative_or(key, 0);
    if (value >= 1) json.refuse(key, "a dropout probability lies in [0, 1)");
    largest = std::max(largest, value);
  }
  return largest;
}

}  // namespace lamina
