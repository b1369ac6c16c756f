// Units, stages, names, the order inside a block, and the operations counted.
#include "tiny_models.hpp"

#include <lamina/base/error.hpp>
#include <lamina/model/model_plan.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina::test {
namespace {

using ::testing::ElementsAre;

ModelPlan plan_of(const std::string& json) { return make_model_plan(parse_model_config(json, "config")); }

std::vector<std::string> names(const UnitSpec& unit) {
  std::vector<std::string> list;
  for (const TensorSpec& tensor : unit.tensors) list.push_back(tensor.name);
  return list;
}
std::vector<std::string> unit_names(const ModelPlan& plan) {
  std::vector<std::string> list;
  for (const UnitSpec& unit : plan.units) list.push_back(unit.name);
  return list;
}
std::vector<std::size_t> stage_units(const ModelPlan& plan) {
  std::vector<std::size_t> list;
  for (const Stage& stage : plan.stages) list.push_back(stage.unit);
  return list;
}

TEST(Plan, UntiedHasThreeKindsOfUnits) {
  const ModelPlan plan = plan_of(llama_json());
  EXPECT_THAT(unit_names(plan), ElementsAre("embedding", "layers.0", "layers.1", "head"));
  EXPECT_THAT(stage_units(plan), ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(plan.stages[0].backward_needs_weights);
  EXPECT_TRUE(plan.stages[3].backward_needs_weights);
  EXPECT_EQ(plan.stages[2].layer, 1);
  EXPECT_THAT(names(plan.units[0]), ElementsAre("model.embed_tokens.weight"));
  EXPECT_THAT(names(plan.units[3]), ElementsAre("lm_head.weight", "model.norm.weight"));
}

TEST(Plan, TiedTensorIsOneTensorWithTwoNames) {
  const ModelPlan plan = plan_of(llama_json(R"(, "tie_word_embeddings": true)"));
  EXPECT_THAT(unit_names(plan), ElementsAre("layers.0", "layers.1", "head"));
  EXPECT_THAT(stage_units(plan), ElementsAre(2, 0, 1, 2));
  const TensorSpec& table = plan.units[2].tensors[0];
  EXPECT_EQ(table.name, "model.embed_tokens.weight");
  EXPECT_THAT(table.aliases, ElementsAre("lm_head.weight"));
  EXPECT_THAT(table.shape, ElementsAre(19, 12));
}

TEST(Plan, BlockHoldsSmallTensorsThenMatricesInTheOrderOfTheForward) {
  const ModelPlan plan = plan_of(llama_json(R"(, "attention_bias": true, "mlp_bias": true)"));
  const std::string p = "model.layers.1.";
  EXPECT_THAT(names(plan.units[2]),
              ElementsAre(p + "input_layernorm.weight", p + "post_attention_layernorm.weight",
                          p + "self_attn.q_proj.bias", p + "self_attn.k_proj.bias", p + "self_attn.v_proj.bias",
                          p + "self_attn.o_proj.bias", p + "mlp.gate_proj.bias", p + "mlp.up_proj.bias",
                          p + "mlp.down_proj.bias", p + "self_attn.q_proj.weight", p + "self_attn.k_proj.weight",
                          p + "self_attn.v_proj.weight", p + "self_attn.o_proj.weight", p + "mlp.gate_proj.weight",
                          p + "mlp.up_proj.weight", p + "mlp.down_proj.weight"));
  EXPECT_THAT(plan.units[2].tensors[10].shape, ElementsAre(12, 12));
  EXPECT_THAT(plan.units[2].tensors[12].shape, ElementsAre(12, 24));
}

TEST(Plan, DecaysMatricesOnly) {
  for (const std::string& json : {llama_json(), style_json("qwen2"), style_json("qwen3"), gpt2_json()}) {
    for (const UnitSpec& unit : plan_of(json).units) {
      for (const TensorSpec& tensor : unit.tensors) EXPECT_EQ(tensor.decay, tensor.shape.size() == 2) << tensor.name;
    }
  }
}

TEST(Plan, Gpt2NamesAndShapes) {
  const ModelPlan plan = plan_of(gpt2_json());
  const std::string p = "transformer.h.0.";
  EXPECT_THAT(
      names(plan.units[0]),
      ElementsAre(p + "ln_1.weight", p + "ln_1.bias", p + "ln_2.weight", p + "ln_2.bias", p + "attn.c_attn.bias",
                  p + "attn.c_proj.bias", p + "mlp.c_fc.bias", p + "mlp.c_proj.bias", p + "attn.c_attn.weight",
                  p + "attn.c_proj.weight", p + "mlp.c_fc.weight", p + "mlp.c_proj.weight"));
  EXPECT_THAT(plan.units[0].tensors[8].shape, ElementsAre(12, 36));
  EXPECT_THAT(names(plan.units[2]), ElementsAre("transformer.wte.weight", "transformer.wpe.weight",
                                                "transformer.ln_f.weight", "transformer.ln_f.bias"));
  EXPECT_THAT(names(plan_of(gpt2_json(R"(, "tie_word_embeddings": false)")).units[0]),
              ElementsAre("transformer.wte.weight", "transformer.wpe.weight"));
}

TEST(Plan, Qwen3HasHeadNorms) {
  const UnitSpec unit = plan_of(style_json("qwen3")).units[1];
  ASSERT_GE(unit.tensors.size(), 4U);
  EXPECT_EQ(unit.tensors[2].name, "model.layers.0.self_attn.q_norm.weight");
  EXPECT_EQ(unit.tensors[3].name, "model.layers.0.self_attn.k_norm.weight");
  EXPECT_THAT(unit.tensors[3].shape, ElementsAre(6));
}

TEST(Plan, CountsOperations) {
  ModelConfig c = plan_of(llama_json()).config;
  const double matrices = 2 * (12 * (24 + 24) + 24 * 12 + 3 * 12 * 10) + 19 * 12;
  EXPECT_DOUBLE_EQ(flops_per_token(c, 64), 6 * matrices + 6 * 2 * 24 * 64);
  c.window = {64, 100};  // as long as the sequence or longer: nothing is cut
  EXPECT_DOUBLE_EQ(flops_per_token(c, 64), 6 * matrices + 6 * 2 * 24 * 64);
  c.window = {16, 16};
  EXPECT_DOUBLE_EQ(flops_per_token(c, 64), 6 * matrices + 12 * 2 * 24 * (16 - 2));
  const ModelConfig g = plan_of(gpt2_json()).config;
  EXPECT_DOUBLE_EQ(flops_per_token(g, 10), 6 * (2 * (12 * 36 + 12 * 12 + 2 * 12 * 20) + 19 * 12) + 6 * 2 * 12 * 10);
}

}  // namespace
}  // namespace lamina::test
