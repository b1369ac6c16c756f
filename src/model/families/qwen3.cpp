// Qwen3 (dense): RMSNorm over each head of q and k, head_dim apart from hidden / heads.
#include "llama_style.hpp"

namespace lamina {
namespace {

ModelConfig parse(const ConfigReader& json) {
  ModelConfig config = llama_style::parse_common(json, "qwen3", {.head_dim = 128});
  config.qkv_bias = config.out_bias = json.flag_or("attention_bias", false);
  json.must_be_flag("mlp_bias", false, "the qwen3 family has no MLP biases");
  config.qk_norm = true;
  llama_style::parse_qwen_windows(json, config);
  return config;
}

}  // namespace

const Family qwen3_family{"qwen3",          WeightLayout::out_in, parse, llama_style::embedding, llama_style::block,
                          llama_style::head};

}  // namespace lamina
