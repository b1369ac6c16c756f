// One model family: how its config.json is read and what its tensors are called.
//
// Adding a family is one file in this folder and one line in registry.cpp.
#pragma once

#include "../config_reader.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <lamina/model/model_config.hpp>
#include <lamina/ops/ops.hpp>
#include <lamina/shard/unit_spec.hpp>

namespace lamina {

// What a tensor is to the computation. The order here is the order inside a unit: q, k, v lie one after another and
// form one matrix, as do gate, up and the biases of both. A block's small tensors come first and its matrices in the
// order of the forward: its gradient then becomes final from the end of the unit towards the beginning, and can leave
// while the rest is still computed.
enum class Role : std::uint8_t {
  token_table,     // [V, h]
  lm_head,         // [V, h]
  position_table,  // [positions, h]
  norm1,
  norm1_bias,  // before attention
  norm2,
  norm2_bias,  // before the MLP
  q_norm,
  k_norm,  // over each head
  q_bias,
  k_bias,
  v_bias,
  qkv_bias,
  o_bias,
  gate_bias,
  up_bias,
  fc_bias,
  down_bias,
  q,
  k,
  v,
  qkv,  // either the first three or the fused one
  o,
  gate,
  up,
  fc,  // either the first two (SwiGLU) or the last (GELU)
  down,
  final_norm,
  final_norm_bias,
};
inline constexpr std::size_t role_count = static_cast<std::size_t>(Role::final_norm_bias) + 1;

struct NamedTensor {
  Role role{};
  TensorSpec spec;
};

struct Family {
  std::string_view model_type;
  WeightLayout layout;  // of the block's matrices; the token table and the head are always [V, h]
  // Reads all keys; the caller has already refused what no family implements.
  ModelConfig (*parse)(const ConfigReader& json);
  // In any order.
  std::vector<NamedTensor> (*embedding)(const ModelConfig& config);
  std::vector<NamedTensor> (*block)(const ModelConfig& config, std::int64_t layer);
  std::vector<NamedTensor> (*head)(const ModelConfig& config);  // without the token table when tied
};

[[nodiscard]] std::span<const Family> all_families();
// nullptr when there is none.
[[nodiscard]] const Family* find_family(std::string_view model_type);
// Of a parsed config. Throws InternalError.
[[nodiscard]] const Family& family_of(const ModelConfig& config);

// A matrix with weight decay, or a norm or bias without.
[[nodiscard]] NamedTensor named_matrix(Role role, std::string name, std::int64_t rows, std::int64_t cols);
[[nodiscard]] NamedTensor named_vector(Role role, std::string name, std::int64_t size);

extern const Family llama_family;
extern const Family mistral_family;
extern const Family qwen2_family;
extern const Family qwen3_family;
extern const Family gpt2_family;

}  // namespace lamina
