// The whole model against finite differences of a reference in double.
#include "tiny_models.hpp"

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

struct Case {
  std::string name;
  std::string json;
  std::size_t sequences = 2, seq_len = 7;
  std::int64_t every = 5;  // checks each n-th element of a tensor
  bool packed = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class Gradients : public ::testing::TestWithParam<Case> {};

// Two documents in each sequence that do not see each other.
void pack(ReferenceBatch& batch) {
  const std::size_t cut = batch.seq_len / 2;
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    const std::size_t t = i % batch.seq_len, start = t < cut ? 0 : cut;
    batch.positions.push_back(static_cast<std::int32_t>(t - start));
    batch.first_visible.push_back(static_cast<std::int32_t>(start));
  }
}

double central_difference(const ReferenceModel& model, double& weight, const ReferenceBatch& batch) {
  constexpr double step = 1e-5;
  const double old = weight;
  weight = old + step;
  const double above = model.loss_sum(batch);
  weight = old - step;
  const double below = model.loss_sum(batch);
  weight = old;
  return (above - below) / (2 * step);
}

TEST_P(Gradients, AgreeWithFiniteDifferences) {
  const ModelPlan plan = make_model_plan(parse_model_config(GetParam().json, "config"));
  const Backend backend = make_backend("cpu", 1);
  const UnitVectors weights = random_weights(plan, 0.3);
  ReferenceBatch batch = random_batch(plan.config.vocab_size, GetParam().sequences, GetParam().seq_len);
  if (GetParam().packed) pack(batch);
  ModelRunner runner(plan, *backend.device, *backend.ops, static_cast<std::int64_t>(batch.sequences),
                     static_cast<std::int64_t>(batch.seq_len), true);
  const PassResult pass = run_pass(runner, plan, weights, batch, true);

  Weights exact = by_name(plan, weights);
  const ReferenceModel reference(plan.config, exact);
  const double loss = reference.loss_sum(batch);
  EXPECT_NEAR(pass.loss_sum, loss, 2e-6 * loss);
  const Weights gradients = by_name(plan, pass.gradients);
  for (auto& [name, values] : exact) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < values.size(); i += static_cast<std::size_t>(GetParam().every)) {
      const double expected = central_difference(reference, values[i], batch);
      const double error = gradients.at(name)[i] - expected;
      difference += error * error;
      size += expected * expected;
    }
    EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(size) + 1e-6) << name << " of norm " << std::sqrt(size);
  }
}

const std::string llama3_rope =
    R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
        "original_max_position_embeddings": 16}, "rope_theta": 50)";

INSTANTIATE_TEST_SUITE_P(
    Families, Gradients,
    ::testing::Values(
        Case{.name = "llama_untied", .json = llama_json()},
        Case{.name = "llama_tied", .json = llama_json(R"(, "tie_word_embeddings": true)")},
        Case{.name = "llama_all_biases", .json = llama_json(R"(, "attention_bias": true, "mlp_bias": true)")},
        Case{.name = "llama3_rope", .json = llama_json(llama3_rope)},
        Case{.name = "linear_rope", .json = llama_json(R"(, "rope_scaling": {"type": "linear", "factor": 3})")},
        Case{.name = "llama_packed", .json = llama_json(), .packed = true},
        Case{.name = "llama_one_token", .json = llama_json(), .sequences = 1, .seq_len = 1},
        Case{.name = "llama_two_chunks", .json = llama_json(), .sequences = 2, .seq_len = 150, .every = 211},
        Case{.name = "mistral_window", .json = style_json("mistral", R"(, "sliding_window": 3)")},
        Case{.name = "qwen2_tied", .json = style_json("qwen2", R"(, "tie_word_embeddings": true)")},
        Case{.name = "qwen2_some_windows",
             .json = style_json("qwen2",
                                R"(, "use_sliding_window": true, "sliding_window": 2, "max_window_layers": 1)")},
        Case{.name = "qwen3", .json = style_json("qwen3")},
        Case{.name = "qwen3_biases_packed", .json = style_json("qwen3", R"(, "attention_bias": true)"), .packed = true},
        Case{.name = "gpt2", .json = gpt2_json()}, Case{.name = "gpt2_packed", .json = gpt2_json(), .packed = true},
        Case{.name = "gpt2_untied", .json = gpt2_json(R"(, "tie_word_embeddings": false)")}),
    [](const auto& at) { return at.param.name; });

}  // namespace
}  // namespace lamina::test
