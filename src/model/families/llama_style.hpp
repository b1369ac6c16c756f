// What Llama, Mistral and Qwen share: RMSNorm, rotary positions, grouped-query attention, SwiGLU, and the names of
// their tensors.
#pragma once

#include "family.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

#include <lamina/model/model_config.hpp>

namespace lamina::llama_style {

// Where the families' defaults differ.
struct Defaults {
  bool kv_heads_required = true;       // else: as many as heads
  std::int64_t head_dim = 0;           // 0: hidden / heads
  bool has_token_id_defaults = false;  // bos 1, eos 2
};

// Sizes, norm, rope, tie, token ids, dropout; biases and windows are the family's own.
[[nodiscard]] ModelConfig parse_common(const ConfigReader& json, std::string_view family, const Defaults& defaults);

// Qwen's windows: layer_types, or use_sliding_window with max_window_layers.
void parse_qwen_windows(const ConfigReader& json, ModelConfig& config);

[[nodiscard]] std::vector<NamedTensor> embedding(const ModelConfig& config);
[[nodiscard]] std::vector<NamedTensor> block(const ModelConfig& config, std::int64_t layer);
[[nodiscard]] std::vector<NamedTensor> head(const ModelConfig& config);

}  // namespace lamina::llama_style
