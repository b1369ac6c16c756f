// config.json of every family: what is read, and what is refused by name.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/base/random.hpp>
#include <lamina/model/model_config.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Published files, shortened to the keys that matter.
const std::string llama31 =
    R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu", "hidden_size": 4096,
  "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false,
  "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
  "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 128256})";
const std::string smollm2 = R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "bos_token_id": 0,
  "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.041666666666666664,
  "intermediate_size": 1536, "is_llama_config": true, "max_position_embeddings": 8192, "model_type": "llama",
  "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3, "pretraining_tp": 1,
  "rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null, "rope_theta": 100000,
  "tie_word_embeddings": true, "vocab_size": 49152})";
const std::string mistral = R"({"bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
  "num_hidden_layers": 2, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
  "sliding_window": 4096, "tie_word_embeddings": false, "vocab_size": 32000})";
const std::string qwen2 = R"({"attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645,
  "hidden_act": "silu", "hidden_size": 896, "intermediate_size": 4864, "max_position_embeddings": 32768,
  "max_window_layers": 2, "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 4,
  "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
  "tie_word_embeddings": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 151936})";
const std::string qwen3 = R"({"attention_bias": false, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
  "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28,
  "model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 3, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
  "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936})";
const std::string gpt2 = R"({"activation_function": "gelu_new", "attn_pdrop": 0.1, "bos_token_id": 50256,
  "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
  "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
  "resid_pdrop": 0.1, "summary_activation": null, "vocab_size": 50257})";

std::string with(std::string json, const std::string& from, const std::string& to) {
  const std::size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return json.replace(at, from.size(), to);
}
// `json` with further keys.
std::string plus(std::string json, const std::string& keys) {
  json.pop_back();
  return json + ", " + keys + "}";
}
ModelConfig parse(const std::string& json) { return parse_model_config(json, "config.json"); }

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

struct Refusal {
  std::string json;
  std::string key;  // that the message must name
};

class Refuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refuses, NamingTheKey) {
  try {
    static_cast<void>(parse(GetParam().json));
    FAIL() << "accepted: " << GetParam().json;
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().key));
    EXPECT_THAT(error.what(), HasSubstr("config.json"));
    EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("\n")));
  }
}

std::vector<Refusal> refusals() {
  std::vector<Refusal> list{
      {"", "JSON"},
      {"{\"a\": ", "JSON"},
      {"[1]", "object"},
      {"{}", "model_type"},
      {R"({"model_type": 7})", "model_type"},
      {with(llama31, R"("model_type": "llama")", R"("model_type": "mamba")"), "known: llama"},
      {plus(llama31, R"("hidden_size": 4096)"), "twice"},
      {with(llama31, R"("factor": 8.0)", R"("factor": 8.0, "factor": 9.0)"), "twice"},
      {with(llama31, "bfloat16", "bf\xff"), "JSON"},
  };
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                          "max_position_embeddings"}) {
    const std::string quoted = "\"" + std::string(key) + "\"";
    list.push_back({with(llama31, quoted, "\"x\""), key});
    for (const char* value :
         {"-4", "0", "\"8\"", "8.0", "true", "[8]", "1e3", "99999999999999999999", "9223372036854775807"}) {
      list.push_back({plus(with(llama31, quoted, "\"x\""), quoted + ": " + value), key});
    }
  }
  for (const auto& [more, key] : std::vector<std::pair<std::string, std::string>>{
           {R"("num_experts": 8)", "num_experts"},
           {R"("num_local_experts": 8)", "num_local_experts"},
           {R"("quantization_config": {"bits": 4})", "quantization_config"},
           {R"("partial_rotary_factor": 0.5)", "partial_rotary_factor"},
           {R"("sliding_window": 4096)", "sliding_window"},
           {R"("head_dim": 0)", "head_dim"},
           {R"("rope_parameters": {"rope_theta": 1e4, "rope_type": "default"})", "rope_scaling"},
           {R"("rope_interleaved": true)", "rope_interleaved"},
           {R"("is_encoder_decoder": true)", "is_encoder_decoder"}}) {
    list.push_back({plus(llama31, more), key});
  }
  for (const auto& [from, to, key] : std::vector<std::array<std::string, 3>>{
           {R"("rope_type": "llama3")", R"("rope_type": "yarn")", "rope_type"},
           {R"("rope_type": "llama3")", R"("rope_type": "dynamic")", "rope_type"},
           {R"("rope_type": "llama3")", R"("type": "longrope")", "rope_scaling.type"},
           {R"("rope_type": "llama3")", R"("rope_type": "llama3", "type": "linear")", "rope_type"},
           {R"("rope_type": "llama3")", R"("rope_type": "linear")", "rope_scaling."},
           {R"("rope_type": "llama3")", R"("rope_type": "llama3", "attention_factor": 1.0)", "attention_factor"},
           {R"("factor": 8.0, )", "", "rope_scaling.factor"},
           {R"("factor": 8.0)", R"("factor": -8)", "rope_scaling.factor"},
           {R"("low_freq_factor": 1.0)", R"("low_freq_factor": null)", "low_freq_factor"},
           {R"("high_freq_factor": 4.0)", R"("high_freq_factor": 1.0)", "high_freq_factor"},
           {R"("rope_theta": 500000.0)", R"("rope_theta": "big")", "rope_theta"},
           {R"("rope_theta": 500000.0)", R"("rope_theta": 0)", "rope_theta"},
           {R"("hidden_act": "silu")", R"("hidden_act": "gelu")", "hidden_act"},
           {R"("num_key_value_heads": 8)", R"("num_key_value_heads": 5)", "num_key_value_heads"},
           {R"("num_key_value_heads": 8)", R"("num_key_value_heads": 64)", "num_key_value_heads"},
           {R"("num_attention_heads": 32)", R"("num_attention_heads": 24)", "num_attention_heads"},
           {R"("attention_bias": false)", R"("attention_bias": 0)", "attention_bias"},
           {R"("rms_norm_eps": 1e-05)", R"("rms_norm_eps": 0)", "rms_norm_eps"},
           {R"("rms_norm_eps": 1e-05)", R"("rms_norm_eps": 1e999)", "out of range"},
           {R"("initializer_range": 0.02)", R"("initializer_range": -1)", "initializer_range"},
           {R"("tie_word_embeddings": false)", R"("tie_word_embeddings": "no")", "tie_word_embeddings"},
           {R"("bos_token_id": 128000)", R"("bos_token_id": -1)", "bos_token_id"},
           {R"([128001, 128008, 128009])", R"([128001, 1.5])", "eos_token_id"},
           {R"("attention_dropout": 0.0)", R"("attention_dropout": 1.0)", "attention_dropout"}}) {
    list.push_back({with(llama31, from, to), key});
  }
  return list;
}

std::vector<Refusal> family_refusals() {
  std::vector<Refusal> list;
  list.push_back({plus(mistral, R"("attention_bias": true)"), "attention_bias"});
  list.push_back({plus(mistral, R"("layer_types": ["sliding_attention", "full_attention"])"), "layer_types"});
  list.push_back({with(mistral, R"("sliding_window": 4096)", R"("sliding_window": -1)"), "sliding_window"});
  list.push_back({with(mistral, R"("num_key_value_heads": 8, )", ""), "num_key_value_heads"});
  list.push_back({plus(qwen2, R"("attention_bias": false)"), "attention_bias"});
  list.push_back({plus(qwen2, R"("layer_types": ["full_attention"])"), "layer_types"});
  list.push_back(
      {plus(qwen3, R"("layer_types": ["full_attention", "sliding_attention", "full_attention"])"), "layer_types"});
  list.push_back(
      {plus(qwen3, R"("layer_types": ["full_attention", "linear_attention", "full_attention"])"), "linear_attention"});
  list.push_back({with(qwen2, R"("use_mrope": false)", R"("use_mrope": true)"), "use_mrope"});
  const std::string windows_on = with(qwen2, R"("use_sliding_window": false)", R"("use_sliding_window": true)");
  list.push_back({with(windows_on, R"("max_window_layers": 2)", R"("max_window_layers": "all")"), "max_window_layers"});
  list.push_back({with(gpt2, "gelu_new", "gelu"), "activation_function"});
  list.push_back({with(gpt2, R"("n_head": 12)", R"("n_head": 7)"), "n_head"});
  list.push_back({with(gpt2, R"("n_positions": 1024)", R"("n_positions": null)"), "n_positions"});
  list.push_back({plus(gpt2, R"("scale_attn_by_inverse_layer_idx": true)"), "scale_attn_by_inverse_layer_idx"});
  list.push_back({plus(gpt2, R"("scale_attn_weights": false)"), "scale_attn_weights"});
  list.push_back({plus(gpt2, R"("add_cross_attention": true)"), "add_cross_attention"});
  return list;
}

INSTANTIATE_TEST_SUITE_P(Broken, Refuses, ::testing::ValuesIn(refusals()),
                         [](const auto& at) { return "case_" + std::to_string(at.index); });
INSTANTIATE_TEST_SUITE_P(BrokenInFamily, Refuses, ::testing::ValuesIn(family_refusals()),
                         [](const auto& at) { return "case_" + std::to_string(at.index); });

// A few random edits: overwritten, removed, doubled and swapped pieces.
std::string mutated(std::string text, std::uint64_t number) {
  static const std::string alphabet = "\"{}[]:,.-+eE0123456789truefalsn \\u\xc3\xff";
  for (std::uint64_t edit = 0; edit <= number % 3; ++edit) {
    const PhiloxBlock random = philox(17, number, edit);
    const std::size_t at = random[0] % text.size(), length = 1 + random[1] % 12;
    switch (random[2] % 4) {
      case 0:
        text[at] = alphabet[random[3] % alphabet.size()];
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(random[3] % text.size(), length));
        break;
      default:
        text.resize(std::max<std::size_t>(at, 1));
    }
    if (text.empty()) text = "{";
  }
  return text;
}

TEST(Config, SurvivesMutatedText) {
  // Damaged text is read or refused with one line, never more.
  const std::array good{llama31, smollm2, mistral, qwen2, qwen3, gpt2};
  int accepted = 0;
  for (std::uint64_t number = 0; number < 100000; ++number) {
    const std::string text = mutated(good[number % good.size()], number);
    try {
      static_cast<void>(parse(text));
      ++accepted;
    } catch (const DataError& error) {
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos) << text;
    } catch (const std::exception& error) {
      FAIL() << error.what() << " for " << text;
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 60000);
  EXPECT_THROW(static_cast<void>(parse(std::string(100000, '['))), DataError);
}

TEST(Config, MissingFolderIsDataError) { EXPECT_THROW(static_cast<void>(read_model_config("/no/such")), DataError); }

}  // namespace
}  // namespace lamina
