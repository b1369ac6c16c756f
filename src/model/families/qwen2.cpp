// Qwen2 and Qwen2.5: biases on q, k and v.
#include "llama_style.hpp"

namespace lamina {
namespace {

ModelConfig parse(const ConfigReader& json) {
  ModelConfig config = llama_style::parse_common(json, "qwen2", {});
  json.must_be_flag("attention_bias", true, "the qwen2 family always has q, k and v biases");
  json.must_be_flag("mlp_bias", false, "the qwen2 family has no MLP biases");
  config.qkv_bias = true;
  llama_style::parse_qwen_windows(json, config);
  return config;
}

}  // namespace

const Family qwen2_family{"qwen2",          WeightLayout::out_in, parse, llama_style::embedding, llama_style::block,
                          llama_style::head};

}  // namespace lamina
