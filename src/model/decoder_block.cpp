#include "decoder_block.hpp"

#include "block_internal.hpp"

#include <cmath>

namespace lamina {

DecoderBlock::DecoderBlock(const ModelConfig& config)
    : config_(config), layout_(family_of(config).layout), map_(block_unit_tensors(config, 0)) {}

AttentionShape DecoderBlock::attention_shape(std::int64_t layer, const BlockTokens& tokens) const {
  AttentionShape shape;
  shape.batch = tokens.batch;
  shape.q_len = shape.kv_len = tokens.q_len;
  shape.heads = config_.heads;
  shape.kv_heads = config_.kv_heads;
  shape.head_dim = config_.head_dim;
  shape.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(config_.head_dim)));
  shape.window = config_.window[static_cast<std::size_t>(layer)];
  shape.first_visible = tokens.first_visible;
  return shape;
}

void DecoderBlock::norm_heads(Ops& ops, TensorView y, TensorView rstd, ConstTensorView x, ConstTensorView w) const {
  const std::int64_t d = config_.head_dim;
  for (std::int64_t head = 0; head < rstd.rows; ++head) {
    ops.rms_norm_forward(y.col_range(head * d, d), rstd.row_range(head, 1), x.col_range(head * d, d), w,
                         static_cast<float>(config_.norm_eps));
  }
}

void DecoderBlock::rotate(Ops& ops, TensorView x, const BlockTokens& tokens, bool inverse) const {
  if (tokens.rope_table.empty()) return;
  ops.rope(x, config_.head_dim, tokens.rope_table, tokens.positions, inverse);
}

// q, k and v as attention sees them. Without head norms q and k are rotated in place once, in the forward; with them
// the projections stay as they are and the result is made again in scratch.
DecoderBlock::Heads DecoderBlock::place_heads(Ops& ops, const BlockTensors<const float*>& w, const BlockTokens& tokens,
                                              const BlockActivations& a, const BlockScratch& scratch,
                                              bool forward) const {
  const std::int64_t q = config_.q_size(), kv = config_.kv_size();
  const TensorView projected_qk = a.qkv.col_range(0, q + kv);
  const TensorView qk = config_.qk_norm ? scratch.rotated : projected_qk;
  if (config_.qk_norm) {
    norm_heads(ops, qk.col_range(0, q), scratch.head_rstd.row_range(0, config_.heads), projected_qk.col_range(0, q),
               w.q_norm);
    norm_heads(ops, qk.col_range(q, kv), scratch.head_rstd.row_range(config_.heads, config_.kv_heads),
               projected_qk.col_range(q, kv), w.k_norm);
  }
  if (forward || config_.qk_norm) rotate(ops, qk, tokens, false);
  return {qk.col_range(0, q), qk.col_range(q, kv), a.qkv.col_range(q + kv, kv)};
}

void DecoderBlock::attend(Ops& ops, std::int64_t layer, const BlockTokens& tokens, const BlockActivations& a,
                          const Heads& heads, const LayerCache* cache) const {
  AttentionShape shape = attention_shape(layer, tokens);
  if (cache == nullptr) {
    ops.attention_forward(a.attention, a.lse, heads.q, heads.k, heads.v, shape);
    return;
  }
  shape.kv_len = cache->length + tokens.q_len;
  ops.copy(cache->keys.row_range(cache->length, tokens.q_len), heads.k);
  ops.copy(cache->values.row_range(cache->length, tokens.q_len), heads.v);
  ops.attention_forward(a.attention, a.lse, heads.q, cache->keys.row_range(0, shape.kv_len),
                        cache->values.row_range(0, shape.kv_len), shape);
}

void DecoderBlock::activate(Ops& ops, TensorView y, ConstTensorView x) const {
  if (config_.activation == ActivationKind::swiglu) {
    ops.swiglu_forward(y, x);
  } else {
    ops.gelu_forward(y, x);
  }
}

void DecoderBlock::forward(Ops& ops, std::int64_t layer, const float* weights, const BlockTokens& tokens,
                           const BlockActivations& a, const BlockScratch& scratch, const LayerCache* cache) const {
  const BlockTensors<const float*> w = tensors(weights);
  norm_forward(ops, config_, scratch.normed, a.norm1, a.x_in, w.norm1);
  ops.linear_forward(a.qkv, scratch.normed, w.qkv, w.qkv_bias, layout_);
  attend(ops, layer, tokens, a, place_heads(ops, w, tokens, a, scratch, true), cache);
  if (a.x_mid.data != a.x_in.data) ops.copy(a.x_mid, a.x_in);
  ops.linear_forward(a.x_mid, a.attention, w.o, w.o_bias, layout_, Write::add);

  norm_forward(ops, config_, scratch.normed, a.norm2, a.x_mid, w.norm2);
  ops.linear_forward(a.up, scratch.normed, w.up, w.up_bias, layout_);
  activate(ops, scratch.mlp, a.up);
  if (a.x_out.data != a.x_mid.data) ops.copy(a.x_out, a.x_mid);
  ops.linear_forward(a.x_out, scratch.mlp, w.down, w.down_bias, layout_, Write::add);
}

}  // namespace lamina
