// Tiny model configurations of every family, and a model with random weights in plain memory that runs whole passes.
#pragma once

#include "reference_model.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <lamina/backends/backend.hpp>
#include <lamina/base/random.hpp>
#include <lamina/model/model_runner.hpp>
#include <lamina/shard/flat_layout.hpp>

namespace lamina::test {

inline std::string llama_json(const std::string& more = "") {
  return R"({"model_type": "llama", "vocab_size": 19, "hidden_size": 12, "intermediate_size": 10,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 512, "initializer_range": 0.02)" +
         more + "}";
}
inline std::string style_json(const std::string& family, const std::string& more = "") {
  std::string json = llama_json(more);
  return json.replace(json.find("llama"), 5, family);
}
inline std::string gpt2_json(const std::string& more = "") {
  return R"({"model_type": "gpt2", "vocab_size": 19, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 300,
    "n_inner": 20, "layer_norm_epsilon": 1e-5)" +
         more + "}";
}

// One vector of floats a unit, without padding.
using UnitVectors = std::vector<std::vector<float>>;

// Well-scaled random weights: matrices and biases of deviation `scale`, norms around 1.
inline UnitVectors random_weights(const ModelPlan& plan, double scale, std::uint64_t seed = 1) {
  UnitVectors units;
  for (const UnitSpec& unit : plan.units) {
    std::vector<float> flat;
    for (const TensorSpec& tensor : unit.tensors) {
      const bool norm = !tensor.decay && tensor.name.ends_with("weight");
      const std::uint64_t key = stream_key(seed, tensor.name);
      for (std::int64_t i = 0; i < tensor.elements(); ++i) {
        flat.push_back(static_cast<float>((norm ? 1 : 0) + scale * normal_at(key, static_cast<std::uint64_t>(i))));
      }
    }
    units.push_back(std::move(flat));
  }
  return units;
}

inline Weights by_name(const ModelPlan& plan, const UnitVectors& units) {
  Weights weights;
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    std::size_t offset = 0;
    for (const TensorSpec& tensor : plan.units[u].tensors) {
      const auto count = static_cast<std::size_t>(tensor.elements());
      weights[tensor.name].assign(units[u].begin() + static_cast<std::ptrdiff_t>(offset),
                                  units[u].begin() + static_cast<std::ptrdiff_t>(offset + count));
      offset += count;
    }
  }
  return weights;
}

struct PassResult {
  double loss_sum = 0;
  std::int64_t labelled = 0;
  std::vector<float> token_losses;
  UnitVectors gradients;
};

inline MicroBatch view_of(const ReferenceBatch& batch) {
  return {static_cast<std::int64_t>(batch.sequences),
          static_cast<std::int64_t>(batch.seq_len),
          batch.tokens,
          batch.labels,
          batch.positions,
          batch.first_visible};
}

// A whole forward, and with `training` a backward into buffers that hold NaN before.
inline PassResult run_pass(ModelRunner& runner, const ModelPlan& plan, const UnitVectors& weights,
                           const ReferenceBatch& batch, bool training) {
  PassResult result;
  for (const auto& unit : weights) {
    result.gradients.emplace_back(unit.size(), std::numeric_limits<float>::quiet_NaN());
  }
  runner.begin(view_of(batch));
  for (std::size_t i = 0; i + 1 < plan.stages.size(); ++i) {
    runner.forward(plan.stages[i], weights[plan.stages[i].unit].data());
  }
  const Stage& head = plan.stages.back();
  runner.forward_head(head, weights[head.unit].data(), training ? result.gradients[head.unit].data() : nullptr);
  for (std::size_t i = plan.stages.size() - 1; training && i-- > 0;) {
    const Stage& stage = plan.stages[i];
    runner.backward(stage, stage.backward_needs_weights ? weights[stage.unit].data() : nullptr,
                    result.gradients[stage.unit].data());
  }
  result.loss_sum = runner.loss_sum().value();
  result.labelled = runner.labelled_tokens();
  result.token_losses.assign(runner.token_losses().begin(), runner.token_losses().end());
  return result;
}

// Random tokens; every third label ignored.
inline ReferenceBatch random_batch(std::int64_t vocab, std::size_t sequences, std::size_t seq_len,
                                   std::uint64_t seed = 7) {
  ReferenceBatch batch{
      .sequences = sequences, .seq_len = seq_len, .tokens = {}, .labels = {}, .positions = {}, .first_visible = {}};
  for (std::size_t i = 0; i < sequences * seq_len; ++i) {
    const PhiloxBlock words = philox(seed, i);
    batch.tokens.push_back(static_cast<std::int32_t>(words[0] % static_cast<std::uint64_t>(vocab)));
    batch.labels.push_back(i % 3 == 2 ? ignored_label
                                      : static_cast<std::int32_t>(words[1] % static_cast<std::uint64_t>(vocab)));
  }
  return batch;
}

}  // namespace lamina::test
