// Mistral 7B (all versions), Nemo and the like: every layer slides, or none.
#include "config_limits.hpp"
#include "llama_style.hpp"

#include <algorithm>

namespace lamina {
namespace {

ModelConfig parse(const ConfigReader& json) {
  ModelConfig config = llama_style::parse_common(json, "mistral", {.has_token_id_defaults = true});
  json.must_be_flag("attention_bias", false, "the mistral family has no attention biases");
  json.must_be_flag("mlp_bias", false, "the mistral family has no MLP biases");
  // Absent means 4096, null means none: transformers' defaults.
  const bool slides = json.has("sliding_window") || !json.names("sliding_window");
  const std::int64_t window = slides ? json.size_or("sliding_window", config_limits::positions, 4096) : 0;
  std::ranges::fill(config.window, window);
  if (json.has("layer_types")) {
    const std::string_view expected = slides ? "sliding_attention" : "full_attention";
    const auto types = json.texts("layer_types");
    if (std::ranges::any_of(types, [&](const std::string& type) { return type != expected; })) {
      json.refuse("layer_types", "in the mistral family all layers use sliding_window, or none when it is null");
    }
  }
  return config;
}

}  // namespace

const Family mistral_family{"mistral",          WeightLayout::out_in, parse, llama_style::embedding,
                            llama_style::block, llama_style::head};

}  // namespace lamina
