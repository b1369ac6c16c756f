#include "activations.hpp"
#include "decoder_block.hpp"
#include "edge_stages.hpp"
#include "rope_table.hpp"

#include <algorithm>
#include <optional>

#include <lamina/base/check.hpp>
#include <lamina/base/checked_product.hpp>
#include <lamina/base/error.hpp>
#include <lamina/model/model_runner.hpp>

#include <fmt/format.h>

namespace lamina {
namespace {

ActivationLimits limits_of(const ModelConfig& config, std::int64_t max_sequences, std::int64_t max_seq_len,
                           bool training) {
  require(max_sequences >= 1 && max_seq_len >= 1, "a micro-batch holds tokens");
  const std::optional<std::int64_t> tokens = checked_product({max_sequences, max_seq_len});
  if (!tokens) {
    throw UsageError(one_line(fmt::format("{} sequences of {} tokens at once", max_sequences, max_seq_len),
                              "so many tokens cannot be counted", "lower the batch or the sequence length"));
  }
  return {.tokens = *tokens,
          .rope_positions = config.position == PositionKind::rope ? max_seq_len : 0,
          .head_rows = std::min(head_chunk, *tokens),
          .training = training};
}

std::int64_t floats_of(const ModelConfig& config, const ActivationLimits& limits) {
  Arena counting(nullptr);
  static_cast<void>(lay_out_activations(counting, config, limits));
  return counting.floats();
}

}  // namespace

class ModelRunner::Impl {
 public:
  Impl(const ModelPlan& plan, Device& device, Ops& ops, std::int64_t max_sequences, std::int64_t max_seq_len,
       bool training, const LossTerms& training_loss);

  void begin(const MicroBatch& batch);
  void forward(const Stage& stage, const float* weights);
  void forward_head(const Stage& stage, const float* weights, float* gradients);
  void backward(const Stage& stage, const float* weights, float* gradients, const FinalFrom& final_from);

  [[nodiscard]] const ExactSum& loss_sum() const { return loss_sum_; }
  [[nodiscard]] std::int64_t labelled_tokens() const { return labelled_tokens_; }
  [[nodiscard]] std::span<const float> token_losses() const { return losses_; }

 private:
  enum class Phase { idle, forward, backward };
  [[nodiscard]] std::int64_t index_of(const Stage& stage) const;
  void take_positions(const MicroBatch& batch);
  [[nodiscard]] std::int64_t tokens() const { return sequences_ * seq_len_; }
  [[nodiscard]] BlockTokens block_tokens() const;

  const ModelConfig& config_;
  Ops& ops_;
  std::int64_t max_seq_len_;
  ActivationLimits limits_;
  Buffer memory_;
  Activations activations_;
  EmbeddingStage embedding_;
  DecoderBlock block_;
  HeadStage head_;

  std::int64_t sequences_ = 0, seq_len_ = 0;
  std::vector<std::int32_t> ids_, labels_, positions_, first_visible_;
  std::vector<float> losses_;
  ExactSum loss_sum_;
  std::int64_t labelled_tokens_ = 0;
  // Which stage must come next, by its place in the plan.
  Phase phase_ = Phase::idle;
  std::int64_t next_ = 0;
};

ModelRunner::Impl::Impl(const ModelPlan& plan, Device& device, Ops& ops, std::int64_t max_sequences,
                        std::int64_t max_seq_len, bool training, const LossTerms& training_loss)
    : config_(plan.config),
      ops_(ops),
      max_seq_len_(max_seq_len),
      limits_(limits_of(plan.config, max_sequences, max_seq_len, training)),
      embedding_(plan.config),
      block_(plan.config),
      head_(plan.config, training_loss) {
  if (max_seq_len > config_.max_positions) {
    throw UsageError(one_line(fmt::format("cannot use sequences of {} tokens", max_seq_len),
                              fmt::format("the model knows {} positions", config_.max_positions),
                              "choose a smaller data.seq_len"));
  }
  memory_ = device.allocate_floats(static_cast<std::size_t>(floats_of(config_, limits_)), "activations");
  Arena arena(memory_.floats());
  activations_ = lay_out_activations(arena, config_, limits_);
  if (limits_.rope_positions > 0 && activations_.rope_table.cols > 0) {
    const std::vector<float> table = make_rope_table(config_, limits_.rope_positions);
    ops_.copy(activations_.rope_table,
              ConstTensorView(table.data(), activations_.rope_table.rows, activations_.rope_table.cols));
  }
  const auto capacity = static_cast<std::size_t>(limits_.tokens);
  for (auto* list : {&ids_, &labels_, &positions_, &first_visible_}) list->reserve(capacity);
  losses_.reserve(capacity);
}

void ModelRunner::Impl::begin(const MicroBatch& batch) {
  require(batch.sequences >= 1 && batch.seq_len >= 1 && batch.seq_len <= max_seq_len_ &&
              batch.sequences * batch.seq_len <= limits_.tokens,
          "the micro-batch fits the runner");
  const auto count = static_cast<std::size_t>(batch.sequences * batch.seq_len);
  require(batch.tokens.size() == count && batch.labels.size() == count, "the micro-batch has a token and a label each");
  const std::int64_t vocab = config_.vocab_size;
  require(std::ranges::all_of(batch.tokens, [&](std::int32_t id) { return id >= 0 && id < vocab; }),
          "token ids lie in the model's vocabulary");
  require(std::ranges::all_of(batch.labels,
                              [&](std::int32_t id) { return id == ignored_label || (id >= 0 && id < vocab); }),
          "labels lie in the model's vocabulary or are ignored");
  sequences_ = batch.sequences;
  seq_len_ = batch.seq_len;
  ids_.assign(batch.tokens.begin(), batch.tokens.end());
  labels_.assign(batch.labels.begin(), batch.labels.end());
  take_positions(batch);
  losses_.assign(count, 0.0F);
  loss_sum_ = ExactSum();
  labelled_tokens_ = std::ranges::count_if(labels_, [](std::int32_t label) { return label != ignored_label; });
  phase_ = Phase::forward;
  next_ = 0;
}

void ModelRunner::Impl::take_positions(const MicroBatch& batch) {
  const auto count = static_cast<std::size_t>(tokens());
  require(batch.first_visible.empty() || batch.first_visible.size() == count, "first_visible has an entry a token");
  first_visible_.assign(batch.first_visible.begin(), batch.first_visible.end());
  if (batch.positions.empty()) {
    positions_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      positions_[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) % seq_len_);
    }
    return;
  }
  require(batch.positions.size() == count, "positions has an entry a token");
  require(std::ranges::all_of(batch.positions, [&](std::int32_t p) { return p >= 0 && p < max_seq_len_; }),
          "positions lie below the longest sequence");
  positions_.assign(batch.positions.begin(), batch.positions.end());
}

std::int64_t ModelRunner::Impl::index_of(const Stage& stage) const {
  switch (stage.kind) {
    case StageKind::embedding:
      return 0;
    case StageKind::block:
      require(stage.layer >= 0 && stage.layer < config_.layers, "the stage names a layer of the model");
      return stage.layer + 1;
    case StageKind::head:
      break;
  }
  return config_.layers + 1;
}

BlockTokens ModelRunner::Impl::block_tokens() const {
  return {sequences_, seq_len_, positions_, first_visible_, activations_.rope_table};
}

void ModelRunner::Impl::forward(const Stage& stage, const float* weights) {
  require(phase_ == Phase::forward && index_of(stage) == next_ && stage.kind != StageKind::head,
          "forward visits the stages in order");
  require(weights != nullptr, "forward has weights");
  if (stage.kind == StageKind::embedding) {
    const TensorView x = config_.layers > 0 ? activations_.blocks.front().x_in : activations_.final_x;
    embedding_.forward(ops_, weights, ids_, positions_, x.row_range(0, tokens()));
  } else {
    const auto layer = static_cast<std::size_t>(stage.layer);
    block_.forward(ops_, stage.layer, weights, block_tokens(), narrowed(activations_.blocks[layer], tokens()),
                   narrowed(activations_.scratch, tokens()));
  }
  ++next_;
}

void ModelRunner::Impl::forward_head(const Stage& stage, const float* weights, float* gradients) {
  require(phase_ == Phase::forward && index_of(stage) == next_ && stage.kind == StageKind::head,
          "the head comes after all blocks");
  require(weights != nullptr, "forward_head has weights");
  require(gradients == nullptr || limits_.training, "gradients need a runner made for training");
  const ConstTensorView x = activations_.final_x.row_range(0, tokens());
  if (gradients != nullptr) {
    head_.loss_and_gradients(ops_, weights, gradients, x, activations_.d_x.row_range(0, tokens()), labels_, losses_,
                             activations_.head);
    phase_ = Phase::backward;
    next_ = config_.layers;
  } else {
    head_.loss(ops_, weights, x, labels_, losses_, activations_.head);
    phase_ = Phase::idle;
  }
  for (const float loss : losses_) loss_sum_.add(static_cast<double>(loss));
}

void ModelRunner::Impl::backward(const Stage& stage, const float* weights, float* gradients,
                                 const FinalFrom& final_from) {
  require(phase_ == Phase::backward && index_of(stage) == next_, "backward visits the stages in reverse order");
  require(gradients != nullptr && (weights != nullptr || !stage.backward_needs_weights), "backward has its buffers");
  const TensorView d_x = activations_.d_x.row_range(0, tokens());
  if (stage.kind == StageKind::embedding) {
    embedding_.backward(ops_, gradients, ids_, positions_, d_x);
    phase_ = Phase::idle;
  } else {
    const auto layer = static_cast<std::size_t>(stage.layer);
    block_.backward(ops_, stage.layer, weights, gradients, d_x, block_tokens(),
                    narrowed(activations_.blocks[layer], tokens()), narrowed(activations_.scratch, tokens()),
                    final_from);
  }
  --next_;
}

ModelRunner::ModelRunner(const ModelPlan& plan, Device& device, Ops& ops, std::int64_t max_sequences,
                         std::int64_t max_seq_len, bool training, const LossTerms& training_loss)
    : impl_(std::make_unique<Impl>(plan, device, ops, max_sequences, max_seq_len, training, training_loss)) {}

ModelRunner::~ModelRunner() = default;

std::size_t ModelRunner::activation_bytes(const ModelPlan& plan, std::int64_t max_sequences, std::int64_t max_seq_len,
                                          bool training) {
  const ActivationLimits limits = limits_of(plan.config, max_sequences, max_seq_len, training);
  return static_cast<std::size_t>(floats_of(plan.config, limits)) * sizeof(float);
}

void ModelRunner::begin(const MicroBatch& batch) { impl_->begin(batch); }
void ModelRunner::forward(const Stage& stage, const float* weights) { impl_->forward(stage, weights); }
void ModelRunner::forward_head(const Stage& stage, const float* weights, float* gradients) {
  impl_->forward_head(stage, weights, gradients);
}
void ModelRunner::backward(const Stage& stage, const float* weights, float* gradients, const FinalFrom& final_from) {
  impl_->backward(stage, weights, gradients, final_from);
}
const ExactSum& ModelRunner::loss_sum() const { return impl_->loss_sum(); }
std::int64_t ModelRunner::labelled_tokens() const { return impl_->labelled_tokens(); }
std::span<const float> ModelRunner::token_losses() const { return impl_->token_losses(); }

}  // namespace lamina
