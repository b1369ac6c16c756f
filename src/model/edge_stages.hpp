// The two ends of the model: token (and position) embedding, and final norm with the head.
#pragma once

#include "activations.hpp"
#include "norm.hpp"
#include "tensor_map.hpp"

#include <cstdint>
#include <span>

#include <lamina/model/model_config.hpp>
#include <lamina/ops/ops.hpp>

namespace lamina {

class EmbeddingStage {
 public:
  // `config` must outlive the stage.
  explicit EmbeddingStage(const ModelConfig& config);

  // x [T, h] from T ids and positions; weights: the flat buffer of the unit that holds the token table.
  void forward(Ops& ops, const float* weights, std::span<const std::int32_t> ids,
               std::span<const std::int32_t> positions, TensorView x) const;
  // Untied: overwrites the unit's gradients. Tied: adds to them.
  void backward(Ops& ops, float* gradients, std::span<const std::int32_t> ids, std::span<const std::int32_t> positions,
                ConstTensorView d_x) const;

 private:
  const ModelConfig& config_;
  TensorMap map_;
};

// Works through the tokens in chunks of head_chunk, so that the logits of all tokens never exist at once.
class HeadStage {
 public:
  // `config` must outlive the stage.
  explicit HeadStage(const ModelConfig& config, const LossTerms& training_loss = {});

  // losses [T]: the cross-entropy alone; 0 where the label is ignored.
  void loss(Ops& ops, const float* weights, ConstTensorView x, std::span<const std::int32_t> labels,
            std::span<float> losses, const HeadActivations& a) const;
  // losses [T] with the terms of the training loss; also d_x [T, h], the gradient of their sum, and all gradients of
  // the unit, both overwritten.
  void loss_and_gradients(Ops& ops, const float* weights, float* gradients, ConstTensorView x, TensorView d_x,
                          std::span<const std::int32_t> labels, std::span<float> losses,
                          const HeadActivations& a) const;
  // Logits of at most as many tokens as `a` has rows: a view into it.
  [[nodiscard]] TensorView logits(Ops& ops, const float* weights, ConstTensorView x, const HeadActivations& a) const;

 private:
  template <typename Pointer>
  [[nodiscard]] NormTensors<Pointer> norm(Pointer base) const;
  template <typename Pointer>
  [[nodiscard]] BasicTensorView<Pointer> matrix(Pointer base) const;

  const ModelConfig& config_;
  TensorMap map_;
  LossTerms training_loss_;
};

}  // namespace lamina
