#include "rope_config.hpp"

#include "config_limits.hpp"

#include <optional>

#include <fmt/format.h>

namespace lamina {
namespace {

constexpr double default_theta = 10000;

std::string rope_type(const ConfigReader& rope) {
  const std::string old_name = rope.text_or("type", "");
  std::string new_name = rope.text_or("rope_type", "");
  if (!old_name.empty() && !new_name.empty() && old_name != new_name) {
    rope.refuse("rope_type", fmt::format("\"type\" says \"{}\"", old_name), "keep one of them");
  }
  if (!new_name.empty()) return new_name;
  return old_name.empty() ? "default" : old_name;
}

void parse_llama3(const ConfigReader& rope, std::int64_t max_positions, RopeConfig& config) {
  config.scaling = RopeScaling::llama3;
  config.factor = rope.positive("factor");
  config.low_freq_factor = rope.positive("low_freq_factor");
  config.high_freq_factor = rope.positive("high_freq_factor");
  if (config.high_freq_factor <= config.low_freq_factor) {
    rope.refuse("high_freq_factor", "it must be greater than low_freq_factor");
  }
  config.original_max_positions =
      rope.size_or("original_max_position_embeddings", config_limits::positions, max_positions);
}

RopeConfig parse_object(const ConfigReader& rope, std::int64_t max_positions, double outer_theta) {
  RopeConfig config;
  config.theta = rope.positive_or("rope_theta", outer_theta);
  if (rope.positive_or("partial_rotary_factor", 1) != 1) {
    rope.refuse("partial_rotary_factor", "rotating only a part of each head is not implemented");
  }
  const std::string type = rope_type(rope);
  if (type == "default") {
    rope.only({"type", "rope_type", "rope_theta", "partial_rotary_factor"});
  } else if (type == "linear") {
    rope.only({"type", "rope_type", "rope_theta", "partial_rotary_factor", "factor"});
    config.scaling = RopeScaling::linear;
    config.factor = rope.positive("factor");
  } else if (type == "llama3") {
    rope.only({"type", "rope_type", "rope_theta", "partial_rotary_factor", "factor", "low_freq_factor",
               "high_freq_factor", "original_max_position_embeddings"});
    parse_llama3(rope, max_positions, config);
  } else {
    rope.refuse(rope.has("rope_type") ? "rope_type" : "type", "this rope type is not implemented",
                "known types: default, linear, llama3");
  }
  return config;
}

bool same(const RopeConfig& a, const RopeConfig& b) {
  return a.theta == b.theta && a.scaling == b.scaling && a.factor == b.factor &&
         a.low_freq_factor == b.low_freq_factor && a.high_freq_factor == b.high_freq_factor &&
         a.original_max_positions == b.original_max_positions;
}

}  // namespace

RopeConfig parse_rope(const ConfigReader& json, std::int64_t max_positions) {
  const double theta = json.positive_or("rope_theta", default_theta);
  std::optional<RopeConfig> config;
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!json.has(key)) continue;
    const RopeConfig parsed = parse_object(json.object(key), max_positions, theta);
    if (config && !same(*config, parsed)) json.refuse(key, "it contradicts rope_parameters", "keep one of them");
    config = parsed;
  }
  if (!config) {
    config.emplace();
    config->theta = theta;
  }
  if (json.has("rope_theta") && config->theta != theta) {
    json.refuse("rope_theta", fmt::format("rope_parameters says {}", config->theta), "keep one of them");
  }
  return *config;
}

}  // namespace lamina
