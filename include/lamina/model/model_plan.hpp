// The units of a model, and the stages a micro-batch passes through.
#pragma once

#include <cstdint>
#include <optional>
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
  std::int64_t offset = 0;             // where the stage's tensors begin in the unit's flat buffer
  std::int64_t layer = 0;              // of a block
  bool backward_needs_weights = true;  // false for the embedding
};

struct ModelPlan {
  ModelConfig config;
  std::vector<UnitSpec> units;
  std::vector<Stage> stages;  // embedding, blocks, head
  // A unit of what is too small or too often needed to be gathered for each use: it stays full for a whole micro-step.
  // At most one.
  std::optional<std::size_t> root;
};

// How modules (embedding, each block, final norm with head) become units. A tied head's module holds the tied tensor
// (two names) and serves the embedding stage too: there is then no embedding module.
enum class UnitKind {
  layer,  // each module is a unit
  block,  // each block is a unit; everything else is the root
  size,   // a module of at least `amount` parameters is a unit; smaller ones are the root
  layers  // `amount` consecutive blocks are a unit; the other modules are units of their own
};
struct UnitRule {
  UnitKind kind = UnitKind::layer;
  std::int64_t amount = 0;
};
// "layer", "block", "size:N", "layers:K". Throws UsageError.
[[nodiscard]] UnitRule parse_unit_rule(const std::string& text);

// Units in the order of stages (the root, if any, last). Inside a block the q, k, v weights lie one after another (one
// fused matrix), likewise their biases, and gate, up.
[[nodiscard]] ModelPlan make_model_plan(const ModelConfig& config, const UnitRule& rule = {});

// Floating-point operations of a stage's forward for one token: 2 a matrix element, 4 a query channel and visible key;
// none for the embedding.
[[nodiscard]] double forward_flops_per_token(const ModelConfig& config, const Stage& stage, std::int64_t seq_len);

// Training floating-point operations per token at sequence length `seq_len`: 6 x matmul parameters (head in, embedding
// out)
// + 6 x layers x q_size x seq_len (causal attention, only visible keys counted).
[[nodiscard]] double flops_per_token(const ModelConfig& config, std::int64_t seq_len);

}  // namespace lamina
