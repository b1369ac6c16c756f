#include "block_internal.hpp"

namespace lamina {
namespace {

void linear_gradients(Ops& ops, TensorView dw, TensorView dbias, ConstTensorView dy, ConstTensorView x,
                      WeightLayout layout) {
  ops.linear_backward_weight(dw, dy, x, layout, Write::overwrite);
  if (!dbias.empty()) ops.linear_backward_bias(dbias, dy, Write::overwrite);
}

}  // namespace

void DecoderBlock::backward(Ops& ops, std::int64_t layer, const float* weights, float* gradients, TensorView d_x,
                            const BlockTokens& tokens, const BlockActivations& a, const BlockScratch& scratch,
                            const std::function<void(std::int64_t)>& final_from) const {
  const BlockTensors<const float*> w = tensors(weights);
  const BlockTensors<float*> g = tensors(gradients);
  // The matrices lie in the order of the forward, behind the small tensors (Role).
  const TensorIsFinal is_final = [&](TensorView tensor) {
    if (final_from) final_from(tensor.data - gradients);
  };
  mlp_backward(ops, w, g, d_x, a, scratch, is_final);
  attention_backward(ops, layer, w, g, d_x, tokens, a, scratch, is_final);
}

void DecoderBlock::mlp_backward(Ops& ops, const BlockTensors<const float*>& w, const BlockTensors<float*>& g,
                                TensorView d_x, const BlockActivations& a, const BlockScratch& scratch,
                                const TensorIsFinal& is_final) const {
  activate(ops, scratch.mlp, a.up);
  linear_gradients(ops, g.down, g.down_bias, d_x, scratch.mlp, layout_);
  is_final(g.down);
  ops.linear_backward_input(scratch.mlp, d_x, w.down, layout_, Write::overwrite);
  TensorView d_up = a.up;
  if (config_.activation == ActivationKind::swiglu) {
    ops.swiglu_backward(d_up, scratch.mlp, a.up);
  } else {
    d_up = scratch.mlp;
    ops.gelu_backward(d_up, scratch.mlp, a.up);
  }
  norm_forward(ops, config_, scratch.normed, a.norm2, a.x_mid, w.norm2);
  linear_gradients(ops, g.up, g.up_bias, d_up, scratch.normed, layout_);
  is_final(g.up);
  ops.linear_backward_input(scratch.normed, d_up, w.up, layout_, Write::overwrite);
  norm_backward(ops, d_x, g.norm2, scratch.normed, a.x_mid, a.norm2, w.norm2, Write::add, Write::overwrite);
}

void DecoderBlock::attention_backward(Ops& ops, std::int64_t layer, const BlockTensors<const float*>& w,
                                      const BlockTensors<float*>& g, TensorView d_x, const BlockTokens& tokens,
                                      const BlockActivations& a, const BlockScratch& scratch,
                                      const TensorIsFinal& is_final) const {
  const std::int64_t q = config_.q_size(), kv = config_.kv_size();
  linear_gradients(ops, g.o, g.o_bias, d_x, a.attention, layout_);
  is_final(g.o);
  ops.linear_backward_input(scratch.d_attention, d_x, w.o, layout_, Write::overwrite);
  const Heads heads = place_heads(ops, w, tokens, a, scratch, false);
  ops.attention_backward(scratch.d_qkv.col_range(0, q), scratch.d_qkv.col_range(q, kv),
                         scratch.d_qkv.col_range(q + kv, kv), scratch.d_attention, a.attention, a.lse, heads.q, heads.k,
                         heads.v, attention_shape(layer, tokens));
  heads_backward(ops, w, g, tokens, a, scratch);
  norm_forward(ops, config_, scratch.normed, a.norm1, a.x_in, w.norm1);
  linear_gradients(ops, g.qkv, g.qkv_bias, scratch.d_qkv, scratch.normed, layout_);
  is_final(g.qkv);
  ops.linear_backward_input(scratch.normed, scratch.d_qkv, w.qkv, layout_, Write::overwrite);
  norm_backward(ops, d_x, g.norm1, scratch.normed, a.x_in, a.norm1, w.norm1, Write::add, Write::overwrite);
}

// From the gradients of q and k as attention saw them to those of the projections, in place.
void DecoderBlock::heads_backward(Ops& ops, const BlockTensors<const float*>& w, const BlockTensors<float*>& g,
                                  const BlockTokens& tokens, const BlockActivations& a,
                                  const BlockScratch& scratch) const {
  const std::int64_t q = config_.q_size(), kv = config_.kv_size();
  rotate(ops, scratch.d_qkv.col_range(0, q + kv), tokens, true);
  if (!config_.qk_norm) return;
  norm_heads_backward(ops, scratch.d_qkv.col_range(0, q), g.q_norm, a.qkv.col_range(0, q),
                      scratch.head_rstd.row_range(0, config_.heads), w.q_norm);
  norm_heads_backward(ops, scratch.d_qkv.col_range(q, kv), g.k_norm, a.qkv.col_range(q, kv),
                      scratch.head_rstd.row_range(config_.heads, config_.kv_heads), w.k_norm);
}

void DecoderBlock::norm_heads_backward(Ops& ops, TensorView d, TensorView dw, ConstTensorView x, ConstTensorView rstd,
                                       ConstTensorView w) const {
  const std::int64_t size = config_.head_dim;
  for (std::int64_t head = 0; head < rstd.rows; ++head) {
    const TensorView d_head = d.col_range(head * size, size);
    ops.rms_norm_backward(d_head, dw, d_head, x.col_range(head * size, size), rstd.row_range(head, 1), w,
                          Write::overwrite, head == 0 ? Write::overwrite : Write::add);
  }
}

}  // namespace lamina
