// GPT-2: LayerNorm, learned positions, GELU, biases everywhere, q|k|v already fused, matrices stored [in, out]
// (Conv1D).
#include "config_limits.hpp"
#include "family.hpp"
#include "shared_keys.hpp"

#include <fmt/format.h>

namespace lamina {
namespace {

void parse_sizes(const ConfigReader& json, ModelConfig& config) {
  json.require({"vocab_size", "n_embd", "n_layer", "n_head", "n_positions"});
  config.vocab_size = json.size("vocab_size", config_limits::vocab);
  config.hidden = json.size("n_embd", config_limits::hidden);
  config.layers = json.size("n_layer", config_limits::layers);
  config.heads = json.size("n_head", config_limits::heads);
  config.kv_heads = config.heads;
  config.max_positions = json.size("n_positions", config_limits::positions);
  config.intermediate = json.size_or("n_inner", config_limits::intermediate, 4 * config.hidden);
  if (config.hidden % config.heads != 0) {
    json.refuse("n_head", fmt::format("n_embd = {} is no multiple of it", config.hidden));
  }
  config.head_dim = config.hidden / config.heads;
}

ModelConfig parse(const ConfigReader& json) {
  ModelConfig config;
  config.family = "gpt2";
  parse_sizes(json, config);
  const std::string activation = json.text_or("activation_function", "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    json.refuse("activation_function", "only gelu_new and gelu_pytorch_tanh are implemented for this family");
  }
  json.must_be_flag("scale_attn_weights", true, "unscaled attention is not implemented");
  json.must_be_flag("scale_attn_by_inverse_layer_idx", false, "scaling attention by layer is not implemented");
  config.norm_eps = json.positive_or("layer_norm_epsilon", 1e-5);
  config.init_std = json.non_negative_or("initializer_range", 0.02);
  config.tied_head = json.flag_or("tie_word_embeddings", true);
  config.qkv_bias = config.out_bias = config.mlp_bias = true;
  config.norm = NormKind::layer;
  config.position = PositionKind::learned;
  config.activation = ActivationKind::gelu_tanh;
  config.window.assign(static_cast<std::size_t>(config.layers), 0);
  read_token_ids(json, config, {50256, 50256});
  config.ignored_dropout = read_dropout(json, {"resid_pdrop", "embd_pdrop", "attn_pdrop"});
  return config;
}

std::vector<NamedTensor> embedding(const ModelConfig& config) {
  NamedTensor table = named_matrix(Role::token_table, "transformer.wte.weight", config.vocab_size, config.hidden);
  if (config.tied_head) table.spec.aliases = {"lm_head.weight"};
  return {table, named_matrix(Role::position_table, "transformer.wpe.weight", config.max_positions, config.hidden)};
}

std::vector<NamedTensor> block(const ModelConfig& config, std::int64_t layer) {
  const std::string prefix = fmt::format("transformer.h.{}.", layer);
  const auto name = [&](std::string_view rest) { return prefix + std::string(rest); };
  const std::int64_t h = config.hidden, f = config.intermediate;
  return {named_vector(Role::norm1, name("ln_1.weight"), h),
          named_vector(Role::norm1_bias, name("ln_1.bias"), h),
          named_matrix(Role::qkv, name("attn.c_attn.weight"), h, 3 * h),
          named_vector(Role::qkv_bias, name("attn.c_attn.bias"), 3 * h),
          named_matrix(Role::o, name("attn.c_proj.weight"), h, h),
          named_vector(Role::o_bias, name("attn.c_proj.bias"), h),
          named_vector(Role::norm2, name("ln_2.weight"), h),
          named_vector(Role::norm2_bias, name("ln_2.bias"), h),
          named_matrix(Role::fc, name("mlp.c_fc.weight"), h, f),
          named_vector(Role::fc_bias, name("mlp.c_fc.bias"), f),
          named_matrix(Role::down, name("mlp.c_proj.weight"), f, h),
          named_vector(Role::down_bias, name("mlp.c_proj.bias"), h)};
}

std::vector<NamedTensor> head(const ModelConfig& config) {
  std::vector<NamedTensor> tensors{named_vector(Role::final_norm, "transformer.ln_f.weight", config.hidden),
                                   named_vector(Role::final_norm_bias, "transformer.ln_f.bias", config.hidden)};
  if (!config.tied_head) {
    tensors.push_back(named_matrix(Role::lm_head, "lm_head.weight", config.vocab_size, config.hidden));
  }
  return tensors;
}

}  // namespace

const Family gpt2_family{"gpt2", WeightLayout::in_out, parse, embedding, block, head};

}  // namespace lamina
