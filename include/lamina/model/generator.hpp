// Generation of text token by token with a key/value cache, over a model that lies whole in one device's memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <lamina/device/device.hpp>
#include <lamina/model/loaded_model.hpp>
#include <lamina/model/sampler.hpp>
#include <lamina/ops/ops.hpp>

namespace lamina {

struct GenerateOptions {
  std::int64_t max_new_tokens = 128;
  SamplingOptions sampling;
  bool stop_at_eos = true;          // at any of the model's eos_ids
  bool keep_common_prefix = false;  // of the prompt, compute only what the generator does not hold already
};

enum class StopReason { eos, max_new_tokens, max_positions, callback };

struct Generated {
  std::vector<std::int32_t> tokens;  // the new ones; an eos that ended it is the last
  StopReason reason = StopReason::max_new_tokens;
};

class Generator {
 public:
  // For at most `max_tokens` tokens, prompt included; allocates cache and activations once. `model`, `device` and `ops`
  // must outlive the generator. Throws UsageError when max_tokens exceeds the model's positions.
  Generator(const LoadedModel& model, Device& device, Ops& ops, std::int64_t max_tokens);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Forgets all tokens.
  void reset();
  // Appends tokens and returns the logits after the last one, valid until the next call. Throws UsageError when they do
  // not fit or when there are none, DataError for ids outside the vocabulary.
  [[nodiscard]] std::span<const float> append(std::span<const std::int32_t> tokens);
  [[nodiscard]] std::int64_t length() const;  // tokens so far

  // Starts anew with `prompt` (or keeps what it begins alike with, keep_common_prefix) and continues it. `on_token`
  // sees each new token as it comes and returns false to stop.
  [[nodiscard]] Generated generate(std::span<const std::int32_t> prompt, const GenerateOptions& options,
                                   const std::function<bool(std::int32_t)>& on_token = {});

  // Bytes of cache and activations for these maxima, without allocating.
  [[nodiscard]] static std::size_t working_bytes(const ModelPlan& plan, std::int64_t max_tokens);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lamina
