// The runner beyond its numbers: initial loss, ignored labels, memory, misuse.
#include "tiny_models.hpp"

#include <cmath>
#include <limits>

#include <lamina/base/error.hpp>
#include <lamina/model/init_weights.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina::test {
namespace {

struct Rig {
  explicit Rig(const std::string& json, std::int64_t sequences = 2, std::int64_t seq_len = 9, bool training = true)
      : plan(make_model_plan(parse_model_config(json, "config"))),
        backend(make_backend("cpu", 1)),
        runner(plan, *backend.device, *backend.ops, sequences, seq_len, training) {}
  ModelPlan plan;
  Backend backend;
  ModelRunner runner;
};

UnitVectors initial_weights(const ModelPlan& plan) {
  UnitVectors units;
  for (const UnitSpec& unit : plan.units) {
    std::vector<float> flat(static_cast<std::size_t>(unit.elements()));
    std::size_t offset = 0;
    for (const TensorSpec& tensor : unit.tensors) {
      const auto count = static_cast<std::size_t>(tensor.elements());
      init_tensor(plan.config, 3, tensor, 0, std::span(flat).subspan(offset, count));
      offset += count;
    }
    units.push_back(std::move(flat));
  }
  return units;
}

TEST(Runner, InitialLossIsLogOfVocabulary) {
  for (const std::string& json : {llama_json(), style_json("qwen3"), gpt2_json()}) {
    Rig rig(json);
    const ReferenceBatch batch = random_batch(19, 2, 9);
    const PassResult pass = run_pass(rig.runner, rig.plan, initial_weights(rig.plan), batch, false);
    EXPECT_EQ(pass.labelled, 12);
    EXPECT_NEAR(pass.loss_sum / 12, std::log(19.0), 0.05);
  }
}

TEST(Runner, IgnoredLabelsGiveExactZeros) {
  for (const std::string& json : {llama_json(), llama_json(R"(, "tie_word_embeddings": true)"), gpt2_json()}) {
    Rig rig(json);
    ReferenceBatch batch = random_batch(19, 2, 9);
    batch.labels.assign(batch.labels.size(), ignored_label);
    const PassResult pass = run_pass(rig.runner, rig.plan, random_weights(rig.plan, 0.3), batch, true);
    EXPECT_EQ(pass.labelled, 0);
    EXPECT_EQ(pass.loss_sum, 0);
    EXPECT_THAT(pass.token_losses, ::testing::Each(0.0F));
    for (const auto& unit : pass.gradients) EXPECT_THAT(unit, ::testing::Each(0.0F));
  }
}

TEST(Runner, TokenLossesAddUp) {
  Rig rig(llama_json());
  const ReferenceBatch batch = random_batch(19, 2, 9);
  const PassResult pass = run_pass(rig.runner, rig.plan, random_weights(rig.plan, 0.3), batch, true);
  ASSERT_EQ(pass.token_losses.size(), 18U);
  double sum = 0;
  for (std::size_t i = 0; i < 18; ++i) {
    sum += static_cast<double>(pass.token_losses[i]);
    EXPECT_EQ(pass.token_losses[i] == 0, batch.labels[i] == ignored_label);
  }
  EXPECT_NEAR(pass.loss_sum, sum, 1e-12);
}

TEST(Runner, SameBitsAgainAndWithoutTraining) {
  for (const std::string& json : {style_json("qwen3"), gpt2_json()}) {
    Rig rig(json), plain(json, 2, 9, false);
    const UnitVectors weights = random_weights(rig.plan, 0.3);
    const ReferenceBatch batch = random_batch(19, 2, 9), other = random_batch(19, 1, 5, 8);
    const PassResult first = run_pass(rig.runner, rig.plan, weights, batch, true);
    static_cast<void>(run_pass(rig.runner, rig.plan, weights, other, true));
    const PassResult second = run_pass(rig.runner, rig.plan, weights, batch, true);
    EXPECT_EQ(first.gradients, second.gradients);
    EXPECT_EQ(first.token_losses, second.token_losses);
    EXPECT_EQ(first.token_losses, run_pass(plain.runner, plain.plan, weights, batch, false).token_losses);
  }
}

// What a backward calls final must not change any more: it may be read by others while the backward goes on.
TEST(Runner, WhatIsCalledFinalStaysAsItIs) {
  const std::string biases = R"(, "attention_bias": true, "mlp_bias": true)";
  for (const std::string& json : {llama_json(), llama_json(biases), style_json("qwen2"), style_json("qwen3"),
                                  style_json("mistral"), gpt2_json()}) {
    Rig rig(json);
    const UnitVectors weights = random_weights(rig.plan, 0.3);
    const ReferenceBatch batch = random_batch(19, 2, 9);
    rig.runner.begin(view_of(batch));
    for (std::size_t i = 0; i + 1 < rig.plan.stages.size(); ++i)
      rig.runner.forward(rig.plan.stages[i], weights[rig.plan.stages[i].unit].data());
    const Stage &head = rig.plan.stages.back(), &block = rig.plan.stages[rig.plan.stages.size() - 2];
    std::vector<float> head_gradient(weights[head.unit].size());
    rig.runner.forward_head(head, weights[head.unit].data(), head_gradient.data());
    std::vector<float> gradient(weights[block.unit].size(), std::numeric_limits<float>::quiet_NaN());
    std::vector<std::pair<std::int64_t, std::vector<float>>> seen;  // from there on, as it was then
    rig.runner.backward(block, weights[block.unit].data(), gradient.data(), [&](std::int64_t element) {
      EXPECT_TRUE(seen.empty() || element < seen.back().first);
      seen.emplace_back(element, std::vector<float>(gradient.begin() + element, gradient.end()));
    });
    ASSERT_EQ(seen.size(), 4U);  // down, up, o, qkv
    for (const auto& [element, values] : seen) {
      EXPECT_EQ(values, std::vector<float>(gradient.begin() + element, gradient.end())) << json;
    }
    EXPECT_LT(seen.back().first, static_cast<std::int64_t>(gradient.size()) / 4);  // all but the small tensors
  }
}

TEST(Runner, AllocatesOnceWhatItSaid) {
  for (const bool training : {true, false}) {
    const ModelPlan plan = make_model_plan(parse_model_config(style_json("qwen3"), "config"));
    const Backend backend = make_backend("cpu", 1);
    const std::size_t before = backend.device->bytes_in_use();
    ModelRunner runner(plan, *backend.device, *backend.ops, 3, 11, training);
    EXPECT_EQ(backend.device->bytes_in_use() - before, ModelRunner::activation_bytes(plan, 3, 11, training));
    const std::size_t allocations = backend.device->allocations();
    static_cast<void>(run_pass(runner, plan, random_weights(plan, 0.3), random_batch(19, 3, 11), training));
    EXPECT_EQ(backend.device->allocations(), allocations);
  }
}

TEST(Runner, EvaluationNeedsLessMemory) {
  ModelConfig config = parse_model_config(llama_json(), "config");
  config.layers = 10;
  config.window.assign(10, 0);
  const ModelPlan plan = make_model_plan(config);
  EXPECT_LT(3 * ModelRunner::activation_bytes(plan, 4, 100, false), ModelRunner::activation_bytes(plan, 4, 100, true));
}

TEST(Runner, RefusesTooLongSequences) { EXPECT_THROW(Rig(gpt2_json(), 1, 301), UsageError); }

TEST(Runner, RefusesBatchesThatNoAddressSpaceHolds) {
  const ModelPlan plan = make_model_plan(parse_model_config(gpt2_json(), "config"));
  for (const std::int64_t sequences : {std::int64_t{1} << 40, std::int64_t{1} << 61, std::int64_t{1} << 62})
    EXPECT_THROW(static_cast<void>(ModelRunner::activation_bytes(plan, sequences, 1 << 20, true)), UsageError);
}

TEST(Runner, RefusesMisuse) {
  Rig rig(llama_json()), plain(llama_json(), 2, 9, false);
  const UnitVectors weights = random_weights(rig.plan, 0.3);
  UnitVectors gradients = weights;
  const auto& stages = rig.plan.stages;
  EXPECT_THROW(rig.runner.forward(stages[0], weights[0].data()), InternalError);  // before begin
  ReferenceBatch batch = random_batch(19, 2, 9);
  rig.runner.begin(view_of(batch));
  EXPECT_THROW(rig.runner.forward(stages[1], weights[1].data()), InternalError);
  rig.runner.forward(stages[0], weights[0].data());
  EXPECT_THROW(rig.runner.forward_head(stages[3], weights[3].data(), nullptr), InternalError);
  EXPECT_THROW(rig.runner.backward(stages[2], weights[2].data(), gradients[2].data()), InternalError);
  batch.tokens[3] = 19;
  EXPECT_THROW(rig.runner.begin(view_of(batch)), InternalError);
  batch.tokens[3] = 0;
  batch.labels[3] = -1;
  EXPECT_THROW(rig.runner.begin(view_of(batch)), InternalError);
  EXPECT_THROW(rig.runner.begin(view_of(random_batch(19, 3, 9))), InternalError);
  EXPECT_THROW(static_cast<void>(run_pass(plain.runner, plain.plan, weights, random_batch(19, 2, 9), true)),
               InternalError);
}

}  // namespace
}  // namespace lamina::test
