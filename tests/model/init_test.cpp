// Initial weights: the same at any slice, of the right size, ones and zeros where they belong.
#include "tiny_models.hpp"

#include <cmath>

#include <lamina/base/error.hpp>
#include <lamina/model/init_weights.hpp>
#include <lamina/model/model_plan.hpp>

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

const std::string wide_json =
    R"({"model_type": "llama", "vocab_size": 500, "hidden_size": 128, "intermediate_size": 200,
  "num_hidden_layers": 8, "num_attention_heads": 4, "max_position_embeddings": 64, "attention_bias": true,
  "initializer_range": 0.05})";

std::vector<float> whole(const ModelConfig& config, const TensorSpec& tensor, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()), NAN);
  init_tensor(config, seed, tensor, 0, values);
  return values;
}
double deviation(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum / static_cast<double>(values.size()));
}
TensorSpec tensor_of(const ModelPlan& plan, const std::string& name) {
  for (const UnitSpec& unit : plan.units) {
    for (const TensorSpec& tensor : unit.tensors) {
      if (tensor.name == name) return tensor;
    }
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(Init, DoesNotDependOnTheSlice) {
  const ModelPlan plan = make_model_plan(parse_model_config(style_json("qwen2"), "config"));
  for (const UnitSpec& unit : plan.units) {
    for (const TensorSpec& tensor : unit.tensors) {
      const std::vector<float> all = whole(plan.config, tensor, 5);
      for (std::int64_t first = 0; first < tensor.elements();) {
        const std::int64_t count = std::min<std::int64_t>(1 + first % 7, tensor.elements() - first);
        std::vector<float> slice(static_cast<std::size_t>(count));
        init_tensor(plan.config, 5, tensor, first, slice);
        for (std::int64_t i = 0; i < count; ++i) {
          ASSERT_EQ(slice[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(first + i)]) << tensor.name;
        }
        first += count;
      }
    }
  }
}

TEST(Init, HasTheRightSizes) {
  const ModelPlan plan = make_model_plan(parse_model_config(wide_json, "config"));
  const auto size = [&](const std::string& name) { return deviation(whole(plan.config, tensor_of(plan, name), 1)); };
  EXPECT_NEAR(size("model.embed_tokens.weight"), 0.05, 0.001);
  EXPECT_NEAR(size("model.layers.3.self_attn.q_proj.weight"), 0.05, 0.001);
  EXPECT_NEAR(size("model.layers.3.mlp.up_proj.weight"), 0.05, 0.001);
  EXPECT_NEAR(size("model.layers.3.self_attn.o_proj.weight"), 0.05 / 4, 0.0003);
  EXPECT_NEAR(size("model.layers.7.mlp.down_proj.weight"), 0.05 / 4, 0.0003);
  EXPECT_EQ(size("model.layers.3.self_attn.q_proj.bias"), 0);
  EXPECT_EQ(size("model.layers.3.input_layernorm.weight"), 1);
  EXPECT_EQ(size("model.norm.weight"), 1);
}

TEST(Init, DiffersBetweenTensorsAndSeeds) {
  const ModelPlan plan = make_model_plan(parse_model_config(wide_json, "config"));
  const TensorSpec zero = tensor_of(plan, "model.layers.0.self_attn.q_proj.weight");
  const TensorSpec one = tensor_of(plan, "model.layers.1.self_attn.q_proj.weight");
  EXPECT_NE(whole(plan.config, zero, 1), whole(plan.config, one, 1));
  EXPECT_NE(whole(plan.config, zero, 1), whole(plan.config, zero, 2));
}

TEST(Init, Gpt2) {
  const ModelPlan plan = make_model_plan(parse_model_config(gpt2_json(), "config"));
  const auto size = [&](const std::string& name) { return deviation(whole(plan.config, tensor_of(plan, name), 1)); };
  EXPECT_NEAR(size("transformer.wpe.weight"), 0.02, 0.001);
  EXPECT_NEAR(size("transformer.h.1.mlp.c_proj.weight"), 0.01, 0.002);
  EXPECT_EQ(size("transformer.h.1.ln_2.weight"), 1);
  EXPECT_EQ(size("transformer.h.1.ln_2.bias"), 0);
}

TEST(Init, RefusesForeignTensors) {
  const ModelConfig config = parse_model_config(wide_json, "config");
  std::vector<float> out(1);
  EXPECT_THROW(
      init_tensor(config, 1, {.name = "model.extra.weight", .shape = {4}, .decay = true, .aliases = {}}, 0, out),
      InternalError);
  EXPECT_THROW(
      init_tensor(config, 1, {.name = "model.norm.weight", .shape = {4}, .decay = true, .aliases = {}}, 4, out),
      InternalError);
}

}  // namespace
}  // namespace lamina::test
