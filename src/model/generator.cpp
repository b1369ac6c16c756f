#include "activations.hpp"
#include "decoder_block.hpp"
#include "edge_stages.hpp"
#include "rope_table.hpp"

#include <algorithm>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/model/generator.hpp>

#include <fmt/format.h>

namespace lamina {
namespace {

// Prompt tokens computed at once.
constexpr std::int64_t prefill_chunk = 256;

struct Memory {
  Activations activations;
  std::vector<LayerCache> caches;
};

Memory lay_out(Arena& arena, const ModelConfig& config, std::int64_t max_tokens) {
  const ActivationLimits limits{.tokens = std::min(prefill_chunk, max_tokens),
                                .rope_positions = config.position == PositionKind::rope ? max_tokens : 0,
                                .head_rows = 1,
                                .training = false};
  Memory memory{.activations = lay_out_activations(arena, config, limits), .caches = {}};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    memory.caches.push_back(
        {.keys = arena.take(max_tokens, config.kv_size()), .values = arena.take(max_tokens, config.kv_size())});
  }
  return memory;
}

std::size_t floats_of(const ModelConfig& config, std::int64_t max_tokens) {
  Arena counting(nullptr);
  static_cast<void>(lay_out(counting, config, max_tokens));
  return static_cast<std::size_t>(counting.floats());
}

}  // namespace

class Generator::Impl {
 public:
  Impl(const LoadedModel& model, Device& device, Ops& ops, std::int64_t max_tokens);

  void reset() { rewind(0); }
  void rewind(std::int64_t length) {
    length_ = length;
    held_.resize(static_cast<std::size_t>(length));
  }
  [[nodiscard]] std::int64_t length() const { return length_; }
  [[nodiscard]] std::span<const float> append(std::span<const std::int32_t> tokens);
  [[nodiscard]] Generated generate(std::span<const std::int32_t> prompt, const GenerateOptions& options,
                                   const std::function<bool(std::int32_t)>& on_token);

 private:
  [[nodiscard]] std::int64_t held_of(std::span<const std::int32_t> prompt) const;
  void check(std::span<const std::int32_t> tokens) const;
  void append_chunk(std::span<const std::int32_t> tokens);
  void compute_logits(std::int64_t row);

  const LoadedModel& model_;
  const ModelConfig& config_;
  Ops& ops_;
  std::int64_t max_tokens_;
  Buffer buffer_;
  Memory memory_;
  EmbeddingStage embedding_;
  DecoderBlock block_;
  HeadStage head_;
  std::int64_t length_ = 0;
  std::vector<std::int32_t> held_;  // the tokens in the cache
  std::vector<std::int32_t> positions_;
  std::vector<float> logits_;
};

Generator::Impl::Impl(const LoadedModel& model, Device& device, Ops& ops, std::int64_t max_tokens)
    : model_(model),
      config_(model.plan.config),
      ops_(ops),
      max_tokens_(max_tokens),
      embedding_(config_),
      block_(config_),
      head_(config_) {
  require(max_tokens >= 1, "a generator has room for tokens");
  if (max_tokens > config_.max_positions) {
    throw UsageError(one_line(fmt::format("cannot generate up to {} tokens", max_tokens),
                              fmt::format("the model knows {} positions", config_.max_positions),
                              "shorten the prompt or ask for fewer tokens"));
  }
  buffer_ = device.allocate_floats(floats_of(config_, max_tokens), "generation cache");
  Arena arena(buffer_.floats());
  memory_ = lay_out(arena, config_, max_tokens);
  const TensorView rope = memory_.activations.rope_table;
  if (rope.size() > 0) {
    const std::vector<float> table = make_rope_table(config_, max_tokens);
    ops_.copy(rope, ConstTensorView(table.data(), rope.rows, rope.cols));
  }
  logits_.resize(static_cast<std::size_t>(config_.vocab_size));
}

void Generator::Impl::check(std::span<const std::int32_t> tokens) const {
  if (tokens.empty()) {
    throw UsageError(one_line("cannot generate", "the prompt holds no tokens", "give a prompt"));
  }
  if (length_ + static_cast<std::int64_t>(tokens.size()) > max_tokens_) {
    throw UsageError(one_line(fmt::format("cannot take {} more tokens", tokens.size()),
                              fmt::format("{} of {} positions are used", length_, max_tokens_), "shorten the prompt"));
  }
  for (const std::int32_t id : tokens) {
    if (id < 0 || id >= config_.vocab_size) {
      throw DataError(one_line(fmt::format("cannot use token {}", id),
                               fmt::format("the model's vocabulary has {} tokens", config_.vocab_size),
                               "use the model's own tokenizer"));
    }
  }
}

std::span<const float> Generator::Impl::append(std::span<const std::int32_t> tokens) {
  check(tokens);
  const auto chunk = static_cast<std::size_t>(prefill_chunk);
  std::size_t done = 0, count = 0;
  while (done < tokens.size()) {
    count = std::min(chunk, tokens.size() - done);
    append_chunk(tokens.subspan(done, count));
    done += count;
  }
  compute_logits(static_cast<std::int64_t>(count) - 1);
  return logits_;
}

void Generator::Impl::append_chunk(std::span<const std::int32_t> tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  positions_.resize(tokens.size());
  for (std::int64_t i = 0; i < count; ++i) {
    positions_[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(length_ + i);
  }
  const Activations& all = memory_.activations;
  const BlockTokens block_tokens{1, count, positions_, {}, all.rope_table};
  const BlockScratch scratch = narrowed(all.scratch, count);
  for (const Stage& stage : model_.plan.stages) {
    if (stage.kind == StageKind::embedding) {
      embedding_.forward(ops_, model_.weights(stage), tokens, positions_, all.final_x.row_range(0, count));
    } else if (stage.kind == StageKind::block) {
      const auto layer = static_cast<std::size_t>(stage.layer);
      LayerCache& cache = memory_.caches[layer];
      cache.length = length_;
      block_.forward(ops_, stage.layer, model_.weights(stage), block_tokens, narrowed(all.blocks[layer], count),
                     scratch, &cache);
    }
  }
  length_ += count;
  held_.insert(held_.end(), tokens.begin(), tokens.end());
}

void Generator::Impl::compute_logits(std::int64_t row) {
  const Activations& all = memory_.activations;
  const float* weights = model_.weights(model_.plan.stages.back());
  const TensorView logits = head_.logits(ops_, weights, all.final_x.row_range(row, 1), all.head);
  ops_.copy(TensorView(logits_.data(), 1, config_.vocab_size), logits);
}

// How many tokens of `prompt` are in the cache at its beginning: never the last one, whose logits are wanted.
std::int64_t Generator::Impl::held_of(std::span<const std::int32_t> prompt) const {
  const auto shared = std::ranges::mismatch(held_, prompt).in1 - held_.begin();
  return std::min(static_cast<std::int64_t>(shared), std::max<std::int64_t>(std::ssize(prompt) - 1, 0));
}

Generated Generator::Impl::generate(std::span<const std::int32_t> prompt, const GenerateOptions& options,
                                    const std::function<bool(std::int32_t)>& on_token) {
  require(options.max_new_tokens >= 0, "max_new_tokens is not negative");
  Sampler sampler(options.sampling);
  rewind(options.keep_common_prefix ? held_of(prompt) : 0);
  Generated result;
  std::span<const float> logits = append(prompt.subspan(static_cast<std::size_t>(length_)));
  while (static_cast<std::int64_t>(result.tokens.size()) < options.max_new_tokens) {
    const std::int32_t token = sampler.pick(logits);
    result.tokens.push_back(token);
    const bool goes_on = !on_token || on_token(token);
    const bool is_eos = std::ranges::find(config_.eos_ids, token) != config_.eos_ids.end();
    if (options.stop_at_eos && is_eos) result.reason = StopReason::eos;
    if (!goes_on) result.reason = StopReason::callback;
    if ((options.stop_at_eos && is_eos) || !goes_on) return result;
    if (static_cast<std::int64_t>(result.tokens.size()) == options.max_new_tokens) break;
    if (length_ == max_tokens_) {
      result.reason = StopReason::max_positions;
      return result;
    }
    logits = append(std::span(&token, 1));
  }
  result.reason = StopReason::max_new_tokens;
  return result;
}

Generator::Generator(const LoadedModel& model, Device& device, Ops& ops, std::int64_t max_tokens)
    : impl_(std::make_unique<Impl>(model, device, ops, max_tokens)) {}

Generator::~Generator() = default;

void Generator::reset() { impl_->reset(); }
std::span<const float> Generator::append(std::span<const std::int32_t> tokens) { return impl_->append(tokens); }
std::int64_t Generator::length() const { return impl_->length(); }
Generated Generator::generate(std::span<const std::int32_t> prompt, const GenerateOptions& options,
                              const std::function<bool(std::int32_t)>& on_token) {
  return impl_->generate(prompt, options, on_token);
}
std::size_t Generator::working_bytes(const ModelPlan& plan, std::int64_t max_tokens) {
  return floats_of(plan.config, max_tokens) * sizeof(float);
}

}  // namespace lamina
