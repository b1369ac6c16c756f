#include "llama_style.hpp"

#include "config_limits.hpp"
#include "rope_config.hpp"
#include "shared_keys.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace lamina::llama_style {
namespace {

void parse_sizes(const ConfigReader& json, const Defaults& defaults, ModelConfig& config) {
  json.require({"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                "max_position_embeddings"});
  config.vocab_size = json.size("vocab_size", config_limits::vocab);
  config.hidden = json.size("hidden_size", config_limits::hidden);
  config.intermediate = json.size("intermediate_size", config_limits::intermediate);
  config.layers = json.size("num_hidden_layers", config_limits::layers);
  config.heads = json.size("num_attention_heads", config_limits::heads);
  // A null means as many as heads.
  if (defaults.kv_heads_required && !json.names("num_key_value_heads")) json.require({"num_key_value_heads"});
  config.kv_heads = json.size_or("num_key_value_heads", config_limits::heads, config.heads);
  if (config.heads % config.kv_heads != 0) {
    json.refuse("num_key_value_heads", fmt::format("num_attention_heads = {} is no multiple of it", config.heads));
  }
  config.max_positions = json.size("max_position_embeddings", config_limits::positions);
  if (json.has("head_dim")) {
    config.head_dim = json.size("head_dim", config_limits::head_dim);
  } else if (defaults.head_dim > 0) {
    config.head_dim = defaults.head_dim;
  } else if (config.hidden % config.heads == 0) {
    config.head_dim = config.hidden / config.heads;
  } else {
    json.refuse("num_attention_heads", fmt::format("hidden_size = {} is no multiple of it", config.hidden),
                "name head_dim");
  }
  if (config.head_dim % 2 != 0) {
    json.refuse(json.has("head_dim") ? "head_dim" : "num_attention_heads",
                fmt::format("rotary positions need heads of even size, and they have {}", config.head_dim),
                "choose sizes with an even hidden_size / num_attention_heads");
  }
}

}  // namespace

ModelConfig parse_common(const ConfigReader& json, std::string_view family, const Defaults& defaults) {
  ModelConfig config;
  config.family = family;
  parse_sizes(json, defaults, config);
  config.norm_eps = json.positive_or("rms_norm_eps", 1e-6);
  config.init_std = json.non_negative_or("initializer_range", 0.02);
  config.tied_head = json.flag_or("tie_word_embeddings", false);
  if (json.text_or("hidden_act", "silu") != "silu") {
    json.refuse("hidden_act", "only silu is implemented for this family");
  }
  json.must_be_flag("rope_interleaved", false, "interleaved rotary pairs are not implemented");
  json.must_be_flag("use_mrope", false, "multimodal rotary positions are not implemented");
  config.rope = parse_rope(json, config.max_positions);
  config.window.assign(static_cast<std::size_t>(config.layers), 0);
  read_token_ids(json, config, defaults.has_token_id_defaults ? TokenIdDefaults{1, 2} : TokenIdDefaults{});
  config.ignored_dropout = read_dropout(json, {"attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop"});
  return config;
}

void parse_qwen_windows(const ConfigReader& json, ModelConfig& config) {
  const bool null_window = json.names("sliding_window") && !json.has("sliding_window");
  const bool windows_on = json.flag_or("use_sliding_window", false) && !null_window;
  const std::int64_t window = json.size_or("sliding_window", config_limits::positions, 4096);
  const auto layers = static_cast<std::size_t>(config.layers);
  if (json.has("layer_types")) {
    const auto types = json.texts("layer_types");
    if (types.size() != layers) json.refuse("layer_types", "its length is not num_hidden_layers");
    for (std::size_t i = 0; i < layers; ++i) {
      if (types[i] == "full_attention") continue;
      if (types[i] != "sliding_attention") {
        json.refuse("layer_types", fmt::format("\"{}\" is not implemented", types[i]));
      }
      if (!windows_on)
        json.refuse("layer_types", "it asks for sliding_attention, but sliding windows are off",
                    "set use_sliding_window to true and sliding_window to a number");
      config.window[i] = window;
    }
    return;
  }
  if (!windows_on) return;
  // Negative or zero means that all layers slide; a whole number is all that is asked for.
  const std::int64_t first = json.has("max_window_layers") ? json.whole("max_window_layers") : 28;
  for (std::size_t i = 0; i < layers; ++i) {
    if (static_cast<std::int64_t>(i) >= first) config.window[i] = window;
  }
}

std::vector<NamedTensor> embedding(const ModelConfig& config) {
  NamedTensor table = named_matrix(Role::token_table, "model.embed_tokens.weight", config.vocab_size, config.hidden);
  if (config.tied_head) table.spec.aliases = {"lm_head.weight"};
  return {table};
}

std::vector<NamedTensor> block(const ModelConfig& config, std::int64_t layer) {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const auto name = [&](std::string_view rest) { return prefix + std::string(rest); };
  const std::int64_t h = config.hidden, f = config.intermediate, q = config.q_size(), kv = config.kv_size();
  std::vector<NamedTensor> tensors{named_matrix(Role::q, name("self_attn.q_proj.weight"), q, h),
                                   named_matrix(Role::k, name("self_attn.k_proj.weight"), kv, h),
                                   named_matrix(Role::v, name("self_attn.v_proj.weight"), kv, h),
                                   named_matrix(Role::o, name("self_attn.o_proj.weight"), h, q),
                                   named_matrix(Role::gate, name("mlp.gate_proj.weight"), f, h),
                                   named_matrix(Role::up, name("mlp.up_proj.weight"), f, h),
                                   named_matrix(Role::down, name("mlp.down_proj.weight"), h, f),
                                   named_vector(Role::norm1, name("input_layernorm.weight"), h),
                                   named_vector(Role::norm2, name("post_attention_layernorm.weight"), h)};
  if (config.qkv_bias) {
    tensors.push_back(named_vector(Role::q_bias, name("self_attn.q_proj.bias"), q));
    tensors.push_back(named_vector(Role::k_bias, name("self_attn.k_proj.bias"), kv));
    tensors.push_back(named_vector(Role::v_bias, name("self_attn.v_proj.bias"), kv));
  }
  if (config.out_bias) tensors.push_back(named_vector(Role::o_bias, name("self_attn.o_proj.bias"), h));
  if (config.mlp_bias) {
    tensors.push_back(named_vector(Role::gate_bias, name("mlp.gate_proj.bias"), f));
    tensors.push_back(named_vector(Role::up_bias, name("mlp.up_proj.bias"), f));
    tensors.push_back(named_vector(Role::down_bias, name("mlp.down_proj.bias"), h));
  }
  if (config.qk_norm) {
    tensors.push_back(named_vector(Role::q_norm, name("self_attn.q_norm.weight"), config.head_dim));
    tensors.push_back(named_vector(Role::k_norm, name("self_attn.k_norm.weight"), config.head_dim));
  }
  return tensors;
}

std::vector<NamedTensor> head(const ModelConfig& config) {
  std::vector<NamedTensor> tensors{named_vector(Role::final_norm, "model.norm.weight", config.hidden)};
  if (!config.tied_head) {
    tensors.push_back(named_matrix(Role::lm_head, "lm_head.weight", config.vocab_size, config.hidden));
  }
  return tensors;
}

}  // namespace lamina::llama_style
