// The units of a model, and the stages a micro-batch passes through.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <lamina/model/model_config.hpp>
#include <lamina/shard/unit_spec.hpp>

namespace lamina {

enum class StageKind { embedding, block, head };

// One step of the forward pass. The backward pass visits the stages in reverse, except that the head runs forward, loss
// and backward in one go when gradients are wanted (logits then never exist twice).
struct Stage {
  StageKind kind = StageKind::block;
  std::size_t unit = 0;
  std::int64_t layer = 0;              // of a block
  bool backward_needs_weights = true;  // false for the embedding
};

struct ModelPlan {
  ModelConfig config;
  std::vector<UnitSpec> units;  // in order: [embedding,] layers.0 ..., head
  std::vector<Stage> stages;    // embedding, blocks, head
};

// Units: with untied weights {embedding, blocks..., head}; with a tied head {blocks..., head}: the head unit then holds
// the tied tensor (two names) and serves the embedding stage too. Inside a block the q, k, v weights lie one after
// another (one fused matrix), likewise their biases, and gate, up.
[[nodiscard]] ModelPlan make_model_plan(const ModelConfig& config);

// Training floating-point operations per token at sequence length `seq_len`: 6 x matmul parameters (head in, embedding
// out)
// + 6 x layers x q_size x seq_len (causal attention, only visible keys counted).
[[nodiscard]] double flops_per_token(const ModelConfig& config, std::int64_t seq_len);

}  // namespace lamina
