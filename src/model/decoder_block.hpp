// One decoder block: norm, attention, residual, norm, MLP, residual; forward for training and for generation with a
// cache, and the backward written by hand.
#pragma once

#include "activations.hpp"
#include "norm.hpp"
#include "tensor_map.hpp"

#include <cstdint>
#include <functional>
#include <span>

#include <lamina/model/model_config.hpp>
#include <lamina/ops/ops.hpp>

namespace lamina {

// Views of a block's weights (const float*) or gradients (float*); what the family lacks is empty.
template <typename Pointer>
struct BlockTensors {
  using View = BasicTensorView<Pointer>;
  View qkv, o, up, down;
  View qkv_bias, o_bias, up_bias, down_bias;
  NormTensors<Pointer> norm1, norm2;
  View q_norm, k_norm;
};

// The tokens a block is applied to: `batch` rows of q_len tokens.
struct BlockTokens {
  std::int64_t batch = 0;
  std::int64_t q_len = 0;
  std::span<const std::int32_t> positions;      // [batch*q_len]
  std::span<const std::int32_t> first_visible;  // [batch*q_len] or empty
  ConstTensorView rope_table;                   // empty without rope
};

// Keys and values of the tokens before, of one sequence: rows [0, length) are valid, and the new ones are appended.
struct LayerCache {
  TensorView keys, values;  // [capacity, kv]
  std::int64_t length = 0;
};

class DecoderBlock {
 public:
  // `config` must outlive the block. All blocks of a model have the same shapes.
  explicit DecoderBlock(const ModelConfig& config);

  // weights: the flat buffer of the layer's unit. Views hold exactly batch*q_len rows (see narrowed). With a cache
  // batch is 1; the caller advances cache->length.
  void forward(Ops& ops, std::int64_t layer, const float* weights, const BlockTokens& tokens, const BlockActivations& a,
               const BlockScratch& scratch, const LayerCache* cache = nullptr) const;

  // d_x: gradient of x_out in, of x_in out. Overwrites all gradients of the unit, and a.up. final_from (may be empty):
  // see ModelRunner.
  void backward(Ops& ops, std::int64_t layer, const float* weights, float* gradients, TensorView d_x,
                const BlockTokens& tokens, const BlockActivations& a, const BlockScratch& scratch,
                const std::function<void(std::int64_t)>& final_from) const;

 private:
  struct Heads;
  template <typename Pointer>
  [[nodiscard]] BlockTensors<Pointer> tensors(Pointer base) const;
  [[nodiscard]] AttentionShape attention_shape(std::int64_t layer, const BlockTokens& tokens) const;
  [[nodiscard]] Heads place_heads(Ops& ops, const BlockTensors<const float*>& w, const BlockTokens& tokens,
                                  const BlockActivations& a, const BlockScratch& scratch, bool forward) const;
  void norm_heads(Ops& ops, TensorView y, TensorView rstd, ConstTensorView x, ConstTensorView w) const;
  void norm_heads_backward(Ops& ops, TensorView d, TensorView dw, ConstTensorView x, ConstTensorView rstd,
                           ConstTensorView w) const;
  void rotate(Ops& ops, TensorView x, const BlockTokens& tokens, bool inverse) const;
  void attend(Ops& ops, std::int64_t layer, const BlockTokens& tokens, const BlockActivations& a, const Heads& heads,
              const LayerCache* cache) const;
  void activate(Ops& ops, TensorView y, ConstTensorView x) const;
  // Told that everything from a tensor's beginning to the end of the unit is final.
  using TensorIsFinal = std::function<void(TensorView)>;
  void mlp_backward(Ops& ops, const BlockTensors<const float*>& w, const BlockTensors<float*>& g, TensorView d_x,
                    const BlockActivations& a, const BlockScratch& scratch, const TensorIsFinal& is_final) const;
  void attention_backward(Ops& ops, std::int64_t layer, const BlockTensors<const float*>& w,
                          const BlockTensors<float*>& g, TensorView d_x, const BlockTokens& tokens,
                          const BlockActivations& a, const BlockScratch& scratch, const TensorIsFinal& is_final) const;
  void heads_backward(Ops& ops, const BlockTensors<const float*>& w, const BlockTensors<float*>& g,
                      const BlockTokens& tokens, const BlockActivations& a, const BlockScratch& scratch) const;

  const ModelConfig& config_;
  WeightLayout layout_;
  TensorMap map_;
};

}  // namespace lamina
