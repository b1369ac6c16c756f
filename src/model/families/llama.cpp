// Llama 1, 2, 3, 3.1, 3.2 and SmolLM2.
#include "llama_style.hpp"

namespace lamina {
namespace {

ModelConfig parse(const ConfigReader& json) {
  ModelConfig config =
      llama_style::parse_common(json, "llama", {.kv_heads_required = false, .has_token_id_defaults = true});
  config.qkv_bias = config.out_bias = json.flag_or("attention_bias", false);
  config.mlp_bias = json.flag_or("mlp_bias", false);
  json.must_be_absent("sliding_window", "the llama family has no sliding window");
  return config;
}

}  // namespace

const Family llama_family{"llama",          WeightLayout::out_in, parse, llama_style::embedding, llama_style::block,
                          llama_style::head};

}  // namespace lamina
