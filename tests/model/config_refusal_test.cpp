// config.json of every family: what is refused, by name of the key; and damaged text.
#include "config_samples.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/base/random.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina::test {
namespace {

using ::testing::HasSubstr;

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

std::vector<Refusal> broken_files() {
  return {
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
}

std::vector<Refusal> wrong_sizes() {
  std::vector<Refusal> list;
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                          "max_position_embeddings"}) {
    const std::string quoted = "\"" + std::string(key) + "\"";
    list.push_back({with(llama31, quoted, "\"x\""), key});
    for (const char* value :
         {"-4", "0", "\"8\"", "8.0", "true", "[8]", "1e3", "99999999999999999999", "9223372036854775807"}) {
      list.push_back({plus(with(llama31, quoted, "\"x\""), quoted + ": " + value), key});
    }
  }
  return list;
}

std::vector<Refusal> foreign_keys() {
  std::vector<Refusal> list;
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
  return list;
}

std::vector<Refusal> wrong_values() {
  std::vector<Refusal> list;
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

std::vector<Refusal> family_limits() {
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

std::vector<Refusal> missing_keys() {
  const std::string lost = with(with(llama31, "hidden_size", "hiden_size"), "vocab_size", "words");
  const std::string few = with(gpt2, R"("n_layer": 12, "n_positions": 1024,)", "");
  return {{lost, "\"vocab_size\", \"hidden_size\" are missing"},
          {lost, "\"hiden_size\" may mean hidden_size"},
          {few, "\"n_layer\", \"n_positions\" are missing"},
          {with(qwen2, "num_key_value_heads", "kv"), "\"num_key_value_heads\" is missing"}};
}

// transformers refuses them, too.
std::vector<Refusal> odd_heads() {
  return {{plus(llama31, R"("head_dim": 63)"), "head_dim"},
          {with(llama31, R"("num_attention_heads": 32)", R"("num_attention_heads": 4096)"), "num_attention_heads"}};
}

std::string case_name(const ::testing::TestParamInfo<Refusal>& at) { return "case_" + std::to_string(at.index); }

INSTANTIATE_TEST_SUITE_P(Files, Refuses, ::testing::ValuesIn(broken_files()), case_name);
INSTANTIATE_TEST_SUITE_P(Sizes, Refuses, ::testing::ValuesIn(wrong_sizes()), case_name);
INSTANTIATE_TEST_SUITE_P(ForeignKeys, Refuses, ::testing::ValuesIn(foreign_keys()), case_name);
INSTANTIATE_TEST_SUITE_P(Values, Refuses, ::testing::ValuesIn(wrong_values()), case_name);
INSTANTIATE_TEST_SUITE_P(Families, Refuses, ::testing::ValuesIn(family_limits()), case_name);

INSTANTIATE_TEST_SUITE_P(Missing, Refuses, ::testing::ValuesIn(missing_keys()), case_name);
INSTANTIATE_TEST_SUITE_P(OddHeads, Refuses, ::testing::ValuesIn(odd_heads()), case_name);

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

}  // namespace
}  // namespace lamina::test
