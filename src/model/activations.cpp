#include "activations.hpp"

#include <algorithm>
#include <optional>

#include <lamina/base/checked_product.hpp>
#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {
namespace {

// [1, T] -> [1, tokens], and [n, T] -> [n, tokens] without gaps.
TensorView fewer_cols(TensorView v, std::int64_t tokens) {
  return v.empty() ? TensorView() : TensorView(v.data, v.rows, tokens);
}

TensorView fewer_rows(TensorView v, std::int64_t tokens) { return v.empty() ? TensorView() : v.row_range(0, tokens); }

NormStats take_stats(Arena& arena, const ModelConfig& config, std::int64_t tokens) {
  NormStats stats;
  stats.rstd = arena.take(1, tokens);
  if (config.norm == NormKind::layer) stats.mean = arena.take(1, tokens);
  return stats;
}

std::int64_t up_width(const ModelConfig& config) {
  return config.activation == ActivationKind::swiglu ? 2 * config.intermediate : config.intermediate;
}

// Everything of a block but the residual stream.
BlockActivations take_block(Arena& arena, const ModelConfig& config, std::int64_t tokens) {
  BlockActivations block;
  block.qkv = arena.take(tokens, config.q_size() + 2 * config.kv_size());
  block.attention = arena.take(tokens, config.q_size());
  block.lse = arena.take(config.heads, tokens);
  block.up = arena.take(tokens, up_width(config));
  block.norm1 = take_stats(arena, config, tokens);
  block.norm2 = take_stats(arena, config, tokens);
  return block;
}

BlockScratch take_scratch(Arena& arena, const ModelConfig& config, const ActivationLimits& limits) {
  const std::int64_t tokens = limits.tokens, f = config.intermediate, q = config.q_size(), kv = config.kv_size();
  BlockScratch scratch;
  scratch.normed = arena.take(tokens, config.hidden);
  const TensorView wide = arena.take(tokens, limits.training ? std::max(f, q) : f);
  scratch.mlp = TensorView(wide.data, tokens, f);
  if (limits.training) {
    scratch.d_attention = TensorView(wide.data, tokens, q);
    scratch.d_qkv = arena.take(tokens, q + 2 * kv);
  }
  if (config.qk_norm) {
    scratch.rotated = arena.take(tokens, q + kv);
    scratch.head_rstd = arena.take(config.heads + config.kv_heads, tokens);
  }
  return scratch;
}

}  // namespace

TensorView Arena::take(std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t alignment = 16;                // floats: one cache line
  constexpr std::int64_t most = std::int64_t{1} << 56;  // beyond any address space, and far from overflow
  const std::int64_t begin = used_;
  const std::optional<std::int64_t> floats = checked_product({rows, cols});
  if (!floats || *floats > most - used_) {
    throw UsageError(one_line(fmt::format("activations of {} x {} numbers cannot be held", rows, cols),
                              "no address space is so large", "lower the batch or the sequence length"));
  }
  used_ += (*floats + alignment - 1) / alignment * alignment;
  return {base_ == nullptr ? nullptr : base_ + begin, rows, cols};
}

Activations lay_out_activations(Arena& arena, const ModelConfig& config, const ActivationLimits& limits) {
  const std::int64_t tokens = limits.tokens;
  Activations all;
  TensorView x = arena.take(tokens, config.hidden);
  const auto next_x = [&] { return limits.training ? arena.take(tokens, config.hidden) : x; };
  BlockActivations shared;
  if (!limits.training) shared = take_block(arena, config, tokens);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    BlockActivations block = limits.training ? take_block(arena, config, tokens) : shared;
    block.x_in = x;
    block.x_mid = next_x();
    x = block.x_out = next_x();
    all.blocks.push_back(block);
  }
  all.final_x = x;
  all.scratch = take_scratch(arena, config, limits);
  all.head.norm = take_stats(arena, config, limits.head_rows);
  all.head.normed = arena.take(limits.head_rows, config.hidden);
  all.head.logits = arena.take(limits.head_rows, config.vocab_size);
  if (limits.training) all.d_x = arena.take(tokens, config.hidden);
  if (limits.rope_positions > 0) all.rope_table = arena.take(limits.rope_positions, 2 * (config.head_dim / 2));
  return all;
}

BlockActivations narrowed(const BlockActivations& whole, std::int64_t tokens) {
  BlockActivations part = whole;
  for (TensorView* view : {&part.x_in, &part.x_mid, &part.x_out, &part.qkv, &part.attention, &part.up}) {
    *view = fewer_rows(*view, tokens);
  }
  for (TensorView* view : {&part.lse, &part.norm1.rstd, &part.norm1.mean, &part.norm2.rstd, &part.norm2.mean}) {
    *view = fewer_cols(*view, tokens);
  }
  return part;
}

BlockScratch narrowed(const BlockScratch& whole, std::int64_t tokens) {
  BlockScratch part = whole;
  for (TensorView* view : {&part.normed, &part.mlp, &part.d_attention, &part.d_qkv, &part.rotated}) {
    *view = fewer_rows(*view, tokens);
  }
  part.head_rstd = fewer_cols(part.head_rstd, tokens);
  return part;
}

}  // namespace lamina
