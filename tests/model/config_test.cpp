// config.json of every family: what is read. What is refused: config_refusal_test.cpp.
#include "config_samples.hpp"
#include "support/temporary_folder.hpp"

#include <fstream>

#include <lamina/base/error.hpp>
#include <lamina/model/model_config.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina::test {
namespace {

using ::testing::ElementsAre;

TEST(Config, ReadsLlama31) {
  const ModelConfig c = parse(llama31);
  EXPECT_EQ(c.family, "llama");
  EXPECT_EQ(c.vocab_size, 128256);
  EXPECT_EQ(c.head_dim, 128);
  EXPECT_EQ(c.kv_heads, 8);
  EXPECT_EQ(c.kv_size(), 1024);
  EXPECT_EQ(c.norm_eps, 1e-5);
  EXPECT_EQ(c.rope.scaling, RopeScaling::llama3);
  EXPECT_EQ(c.rope.theta, 500000);
  EXPECT_EQ(c.rope.factor, 8);
  EXPECT_EQ(c.rope.original_max_positions, 8192);
  EXPECT_THAT(c.eos_ids, ElementsAre(128001, 128008, 128009));
  EXPECT_EQ(c.eos_id, 128001);
  EXPECT_FALSE(c.tied_head);
  EXPECT_FALSE(c.qkv_bias);
  EXPECT_THAT(c.window, ::testing::Each(0));
}

TEST(Config, ReadsSmolLm2) {
  const ModelConfig c = parse(smollm2);
  EXPECT_EQ(c.heads, 9);
  EXPECT_EQ(c.kv_heads, 3);
  EXPECT_EQ(c.head_dim, 64);
  EXPECT_TRUE(c.tied_head);
  EXPECT_EQ(c.rope.theta, 100000);
  EXPECT_EQ(c.rope.scaling, RopeScaling::none);
  EXPECT_DOUBLE_EQ(c.init_std, 1.0 / 24);
  EXPECT_EQ(c.bos_id, 0);
  EXPECT_EQ(c.eos_id, 0);
}

TEST(Config, ReadsLlamaBiasesAndDefaults) {
  const std::string small = R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128)";
  const ModelConfig plain = parse(small + "}");
  EXPECT_EQ(plain.kv_heads, 4);
  EXPECT_EQ(plain.norm_eps, 1e-6);
  EXPECT_EQ(plain.rope.theta, 10000);
  EXPECT_EQ(plain.bos_id, 1);
  EXPECT_THAT(plain.eos_ids, ElementsAre(2));
  const ModelConfig biased = parse(small + R"(, "attention_bias": true, "mlp_bias": true, "eos_token_id": null})");
  EXPECT_TRUE(biased.qkv_bias && biased.out_bias && biased.mlp_bias);
  EXPECT_TRUE(biased.eos_ids.empty());
  EXPECT_FALSE(biased.eos_id.has_value());
}

TEST(Config, ReadsMistralWindows) {
  EXPECT_THAT(parse(mistral).window, ElementsAre(4096, 4096));
  EXPECT_THAT(parse(with(mistral, R"("sliding_window": 4096)", R"("sliding_window": null)")).window, ElementsAre(0, 0));
  EXPECT_THAT(parse(with(mistral, R"("sliding_window": 4096, )", "")).window, ElementsAre(4096, 4096));
  EXPECT_THAT(parse(plus(mistral, R"("layer_types": ["sliding_attention", "sliding_attention"])")).window,
              ElementsAre(4096, 4096));
}

TEST(Config, ReadsQwenWindows) {
  EXPECT_THAT(parse(qwen2).window, ElementsAre(0, 0, 0, 0));
  const std::string on = with(qwen2, R"("use_sliding_window": false)", R"("use_sliding_window": true)");
  EXPECT_THAT(parse(on).window, ElementsAre(0, 0, 32768, 32768));
  EXPECT_THAT(parse(with(on, R"("sliding_window": 32768)", R"("sliding_window": null)")).window,
              ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(parse(plus(on, R"("layer_types": ["sliding_attention", "full_attention", "full_attention",
    "sliding_attention"])"))
                  .window,
              ElementsAre(32768, 0, 0, 32768));
  EXPECT_THAT(parse(plus(qwen3, R"("layer_types": ["full_attention", "full_attention", "full_attention"])")).window,
              ElementsAre(0, 0, 0));
}

TEST(Config, ReadsQwen) {
  const ModelConfig two = parse(qwen2);
  EXPECT_TRUE(two.qkv_bias);
  EXPECT_FALSE(two.out_bias);
  EXPECT_TRUE(two.tied_head);
  EXPECT_FALSE(two.qk_norm);
  const ModelConfig three = parse(qwen3);
  EXPECT_TRUE(three.qk_norm);
  EXPECT_FALSE(three.qkv_bias);
  EXPECT_EQ(three.q_size(), 2048);
  EXPECT_EQ(parse(with(qwen3, R"("head_dim": 128, )", "")).head_dim, 128);
  EXPECT_TRUE(parse(with(qwen3, R"("attention_bias": false)", R"("attention_bias": true)")).out_bias);
}

TEST(Config, ReadsGpt2) {
  const ModelConfig c = parse(gpt2);
  EXPECT_EQ(c.intermediate, 3072);
  EXPECT_EQ(c.head_dim, 64);
  EXPECT_EQ(c.kv_heads, 12);
  EXPECT_TRUE(c.tied_head && c.qkv_bias && c.out_bias && c.mlp_bias);
  EXPECT_EQ(c.norm, NormKind::layer);
  EXPECT_EQ(c.position, PositionKind::learned);
  EXPECT_EQ(c.activation, ActivationKind::gelu_tanh);
  EXPECT_EQ(c.ignored_dropout, 0.1);
  EXPECT_EQ(parse(plus(gpt2, R"("n_inner": 100)")).intermediate, 100);
  EXPECT_EQ(parse(plus(gpt2, R"("n_inner": null)")).intermediate, 3072);
  EXPECT_FALSE(parse(plus(gpt2, R"("tie_word_embeddings": false)")).tied_head);
}

TEST(Config, ReadsBothRopeSchemas) {
  const std::string bare = with(with(smollm2, R"("rope_scaling": null, )", ""), R"("rope_theta": 100000,)", "");
  EXPECT_EQ(parse(plus(bare, R"("rope_parameters": {"rope_theta": 777.5, "rope_type": "default"})")).rope.theta, 777.5);
  const ModelConfig linear = parse(plus(bare, R"("rope_theta": 5, "rope_scaling": {"type": "linear", "factor": 2.5})"));
  EXPECT_EQ(linear.rope.scaling, RopeScaling::linear);
  EXPECT_EQ(linear.rope.factor, 2.5);
  EXPECT_EQ(linear.rope.theta, 5);
  const std::string scaled = R"("rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.5, "high_freq_factor": 6)";
  const ModelConfig v5 = parse(plus(bare, R"("rope_parameters": {"rope_theta": 9.0, )" + scaled + "}"));
  EXPECT_EQ(v5.rope.scaling, RopeScaling::llama3);
  EXPECT_EQ(v5.rope.low_freq_factor, 1.5);
  EXPECT_EQ(v5.rope.high_freq_factor, 6);
  EXPECT_EQ(v5.rope.original_max_positions, 8192);  // max_position_embeddings
  // Both schemas side by side are fine while they agree.
  EXPECT_EQ(
      parse(plus(bare, R"("rope_theta": 9, "rope_parameters": {"rope_theta": 9, "rope_type": "default"})")).rope.theta,
      9);
}

TEST(Config, ANullCountOfKeyValueHeadsMeansAsManyAsHeads) {
  for (const std::string& family : {llama31, qwen2, qwen3}) {
    const ModelConfig plain = parse(family);
    const std::string key = fmt::format(R"("num_key_value_heads": {})", plain.kv_heads);
    EXPECT_EQ(parse(with(family, key, R"("num_key_value_heads": null)")).kv_heads, plain.heads);
  }
}

TEST(Config, LikelySlipsAreNamed) {
  for (const std::string& family : {llama31, smollm2, mistral, qwen2, qwen3, gpt2}) {
    EXPECT_THAT(parse(plus(family, R"("pad_token_id": 0, "problem_type": "y", "summary_type": "x")")).warnings,
                testing::IsEmpty());
  }
  EXPECT_THAT(parse(with(llama31, "rms_norm_eps", "rms_norm_epz")).warnings,
              ElementsAre(testing::AllOf(testing::HasSubstr("rms_norm_epz"), testing::HasSubstr("rms_norm_eps"))));
  EXPECT_THAT(parse(plus(gpt2, R"("tie_word_embedings": false)")).warnings, testing::SizeIs(1));
  EXPECT_THAT(parse(with(qwen3, "rope_theta", "rope_tehta")).warnings, testing::SizeIs(1));
}

// generate() of transformers: the file beside config.json says, where it says something.
TEST(Config, GeneratedTextsEndAsTheGenerationConfigSays) {
  const TemporaryFolder folder;
  const ModelConfig config = parse(llama31);
  EXPECT_EQ(read_generation_ends(folder.path(), config), config.eos_ids);
  std::ofstream(folder / "generation_config.json") << R"({"eos_token_id": [5, 7], "top_p": 0.9})";
  EXPECT_THAT(read_generation_ends(folder.path(), config), ElementsAre(5, 7));
  std::ofstream(folder / "generation_config.json") << R"({"eos_token_id": 9})";
  EXPECT_THAT(read_generation_ends(folder.path(), config), ElementsAre(9));
  std::ofstream(folder / "generation_config.json") << R"({"eos_token_id": null})";
  EXPECT_EQ(read_generation_ends(folder.path(), config), config.eos_ids);
  std::ofstream(folder / "generation_config.json") << R"({"eos_token_id": "end"})";
  EXPECT_THROW(static_cast<void>(read_generation_ends(folder.path(), config)), DataError);
}

TEST(Config, MissingFolderIsDataError) { EXPECT_THROW(static_cast<void>(read_model_config("/no/such")), DataError); }

}  // namespace
}  // namespace lamina::test
