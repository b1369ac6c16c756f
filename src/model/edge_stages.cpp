#include "edge_stages.hpp"

#include <algorithm>

namespace lamina {
namespace {

bool all_ignored(std::span<const std::int32_t> labels) {
  return std::ranges::all_of(labels, [](std::int32_t label) { return label == ignored_label; });
}

NormStats first_tokens(const NormStats& stats, std::int64_t tokens) {
  NormStats part{.rstd = stats.rstd.col_range(0, tokens), .mean = {}};
  if (!stats.mean.empty()) part.mean = stats.mean.col_range(0, tokens);
  return part;
}

// Calls `work` with the first token and the number of tokens of each chunk.
template <typename Work>
void each_chunk(std::int64_t tokens, Work work) {
  for (std::int64_t first = 0; first < tokens; first += head_chunk) work(first, std::min(head_chunk, tokens - first));
}

template <typename T>
std::span<T> part(std::span<T> all, std::int64_t first, std::int64_t count) {
  return all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

}  // namespace

EmbeddingStage::EmbeddingStage(const ModelConfig& config) : config_(config), map_(embedding_unit_tensors(config)) {}

void EmbeddingStage::forward(Ops& ops, const float* weights, std::span<const std::int32_t> ids,
                             std::span<const std::int32_t> positions, TensorView x) const {
  ops.embedding_forward(x, map_.matrix(weights, Role::token_table, config_.vocab_size, config_.hidden), ids);
  if (config_.position == PositionKind::learned) {
    ops.embedding_forward(x, map_.matrix(weights, Role::position_table, config_.max_positions, config_.hidden),
                          positions, Write::add);
  }
}

void EmbeddingStage::backward(Ops& ops, float* gradients, std::span<const std::int32_t> ids,
                              std::span<const std::int32_t> positions, ConstTensorView d_x) const {
  const Write write = config_.tied_head ? Write::add : Write::overwrite;
  ops.embedding_backward(map_.matrix(gradients, Role::token_table, config_.vocab_size, config_.hidden), d_x, ids,
                         write);
  if (config_.position == PositionKind::learned) {
    ops.embedding_backward(map_.matrix(gradients, Role::position_table, config_.max_positions, config_.hidden), d_x,
                           positions, write);
  }
}

HeadStage::HeadStage(const ModelConfig& config, const LossTerms& training_loss)
    : config_(config), map_(head_unit_tensors(config)), training_loss_(training_loss) {}

template <typename Pointer>
NormTensors<Pointer> HeadStage::norm(Pointer base) const {
  return {map_.vector(base, Role::final_norm, config_.hidden),
          map_.vector(base, Role::final_norm_bias, config_.hidden)};
}

template <typename Pointer>
BasicTensorView<Pointer> HeadStage::matrix(Pointer base) const {
  const Role role = config_.tied_head ? Role::token_table : Role::lm_head;
  return map_.matrix(base, role, config_.vocab_size, config_.hidden);
}

TensorView HeadStage::logits(Ops& ops, const float* weights, ConstTensorView x, const HeadActivations& a) const {
  const TensorView normed = a.normed.row_range(0, x.rows), logits = a.logits.row_range(0, x.rows);
  norm_forward(ops, config_, normed, first_tokens(a.norm, x.rows), x, norm(weights));
  ops.linear_forward(logits, normed, matrix(weights), {}, WeightLayout::out_in);
  return logits;
}

void HeadStage::loss(Ops& ops, const float* weights, ConstTensorView x, std::span<const std::int32_t> labels,
                     std::span<float> losses, const HeadActivations& a) const {
  each_chunk(x.rows, [&](std::int64_t first, std::int64_t count) {
    const auto chunk_labels = part(labels, first, count);
    const auto chunk_losses = part(losses, first, count);
    if (all_ignored(chunk_labels)) {
      std::ranges::fill(chunk_losses, 0.0F);
      return;
    }
    ops.cross_entropy(logits(ops, weights, x.row_range(first, count), a), chunk_labels, chunk_losses, false);
  });
}

void HeadStage::loss_and_gradients(Ops& ops, const float* weights, float* gradients, ConstTensorView x, TensorView d_x,
                                   std::span<const std::int32_t> labels, std::span<float> losses,
                                   const HeadActivations& a) const {
  const auto w = matrix(weights);
  const auto dw = matrix(gradients);
  const NormTensors<float*> d_norm = norm(gradients);
  Write write = Write::overwrite;  // the first chunk with labels; the others add
  each_chunk(x.rows, [&](std::int64_t first, std::int64_t count) {
    const auto chunk_labels = part(labels, first, count);
    const auto chunk_losses = part(losses, first, count);
    if (all_ignored(chunk_labels)) {
      std::ranges::fill(chunk_losses, 0.0F);
      ops.fill(d_x.row_range(first, count), 0);
      return;
    }
    const ConstTensorView chunk_x = x.row_range(first, count);
    const TensorView d_logits = logits(ops, weights, chunk_x, a);
    ops.cross_entropy(d_logits, chunk_labels, chunk_losses, true, training_loss_);
    const TensorView normed = a.normed.row_range(0, count);
    ops.linear_backward_weight(dw, d_logits, normed, WeightLayout::out_in, write);
    ops.linear_backward_input(normed, d_logits, w, WeightLayout::out_in, Write::overwrite);
    norm_backward(ops, d_x.row_range(first, count), d_norm, normed, chunk_x, first_tokens(a.norm, count), norm(weights),
                  Write::overwrite, write);
    write = Write::add;
  });
  if (write == Write::overwrite) {  // no label in the whole batch
    ops.fill(dw, 0);
    ops.fill(d_norm.weight, 0);
    if (!d_norm.bias.empty()) ops.fill(d_norm.bias, 0);
  }
  // A position table that shares the unit gets its gradient from the embedding stage, which adds.
  if (map_.has(Role::position_table)) {
    ops.fill(map_.matrix(gradients, Role::position_table, config_.max_positions, config_.hidden), 0);
  }
}

}  // namespace lamina
