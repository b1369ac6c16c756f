// Forward and backward of one micro-batch, stage by stage. Owns the activations; never owns weights or gradients.
//
// The caller (train/step) gathers a stage's unit, hands its flat buffer in, and releases it: the runner keeps no
// pointer to weights after a call returns.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <lamina/base/exact_sum.hpp>
#include <lamina/device/device.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/ops/ops.hpp>

namespace lamina {

// `sequences` rows of `seq_len` tokens each, row-major. labels: the target at each position (already shifted), or
// ignored_label.
struct MicroBatch {
  std::int64_t sequences = 0;
  std::int64_t seq_len = 0;
  std::span<const std::int32_t> tokens;
  std::span<const std::int32_t> labels;
  std::span<const std::int32_t> positions = {};      // empty: 0 .. seq_len-1 in every sequence
  std::span<const std::int32_t> first_visible = {};  // empty: 0 everywhere (AttentionShape::first_visible)
};

// Told during a backward: from this element of the stage on, to its end, the gradient is final. The numbers fall from
// call to call; that all of it is final is told by the return.
using FinalFrom = std::function<void(std::int64_t element)>;

class ModelRunner {
 public:
  // Allocates all activations for micro-batches of up to `max_sequences` x `max_seq_len` tokens; `training` also what
  // backward needs. Nothing is allocated later. `plan`, `device` and `ops` must outlive the runner. `training_loss` is
  // what forward_head with gradients minimises; without gradients the loss is the cross-entropy alone.
  ModelRunner(const ModelPlan& plan, Device& device, Ops& ops, std::int64_t max_sequences, std::int64_t max_seq_len,
              bool training, const LossTerms& training_loss = {});
  ~ModelRunner();
  ModelRunner(const ModelRunner&) = delete;
  ModelRunner& operator=(const ModelRunner&) = delete;

  // Bytes of activations for these maxima, without allocating.
  [[nodiscard]] static std::size_t activation_bytes(const ModelPlan& plan, std::int64_t max_sequences,
                                                    std::int64_t max_seq_len, bool training);

  // Copies what it needs of the batch.
  void begin(const MicroBatch& batch);
  // Stages in order. `weights` is where the stage's tensors begin: the flat buffer of its unit plus Stage::offset;
  // valid during the call. `gradients`, below, likewise.
  void forward(const Stage& stage, const float* weights);
  // The head stage: loss of every labelled token and, when `gradients` is given, the backward of the head into it.
  // `gradients` is the flat gradient buffer of the head's unit; every element (without padding) is overwritten. A tied
  // tensor's gradient is completed later by the embedding stage's backward, which adds to it.
  void forward_head(const Stage& stage, const float* weights, float* gradients);
  // Embedding and block stages in reverse order. Overwrites every element of `gradients` (a tied embedding adds
  // instead). `weights` may be null for a stage with backward_needs_weights == false.
  void backward(const Stage& stage, const float* weights, float* gradients, const FinalFrom& final_from = {});

  // After forward_head: the sum of the losses (natural log) over the labelled tokens, and their number.
  [[nodiscard]] const ExactSum& loss_sum() const;
  [[nodiscard]] std::int64_t labelled_tokens() const;
  // After forward_head: the loss of each position (0 where ignored), in row order.
  [[nodiscard]] std::span<const float> token_losses() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lamina
