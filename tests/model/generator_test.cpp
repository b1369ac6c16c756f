// Generation with a cache gives what computing the whole prefix each time gives; stops and refusals.
#include "tiny_models.hpp"

#include <algorithm>
#include <cmath>

#include <lamina/base/error.hpp>
#include <lamina/model/generator.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina::test {
namespace {

struct Rig {
  explicit Rig(const std::string& json)
      : backend(make_backend("cpu", 1)),
        model(allocate_model(parse_model_config(json, "config"), *backend.device)),
        weights(random_weights(model.plan, 0.35)) {
    for (std::size_t u = 0; u < weights.size(); ++u) std::ranges::copy(weights[u], model.units[u].floats());
  }
  Backend backend;
  LoadedModel model;
  UnitVectors weights;
};

std::vector<double> reference_logits(const Rig& rig, const Weights& weights, const std::vector<std::int32_t>& tokens) {
  const ReferenceBatch batch{
      .sequences = 1, .seq_len = tokens.size(), .tokens = tokens, .labels = {}, .positions = {}, .first_visible = {}};
  return ReferenceModel(rig.model.plan.config, weights).logits(batch, 0).back();
}

class Cached : public ::testing::TestWithParam<std::string> {};

TEST_P(Cached, EqualsFullPrefix) {
  const Rig rig(GetParam());
  const Weights weights = by_name(rig.model.plan, rig.weights);
  Generator generator(rig.model, *rig.backend.device, *rig.backend.ops, 40);
  const std::size_t allocations = rig.backend.device->allocations();
  std::vector<std::int32_t> tokens{3, 1, 4, 1, 5};
  std::span<const float> logits = generator.append(tokens);
  for (int step = 0; step < 20; ++step) {
    const std::vector<double> expected = reference_logits(rig, weights, tokens);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(logits[i], expected[i], 1e-5 * std::max(1.0, std::abs(expected[i]))) << "step " << step;
    }
    const auto best = std::ranges::max_element(logits) - logits.begin();
    ASSERT_EQ(best, std::ranges::max_element(expected) - expected.begin());
    tokens.push_back(static_cast<std::int32_t>(best));
    logits = generator.append(std::span(tokens).last(1));
  }
  EXPECT_EQ(generator.length(), 25);
  EXPECT_EQ(rig.backend.device->allocations(), allocations);

  GenerateOptions options;
  options.max_new_tokens = 20;
  options.stop_at_eos = false;
  const Generated again = generator.generate(std::span(tokens).first(5), options);
  EXPECT_EQ(again.tokens, std::vector<std::int32_t>(tokens.begin() + 5, tokens.end()));
  EXPECT_EQ(again.reason, StopReason::max_new_tokens);
}

INSTANTIATE_TEST_SUITE_P(Families, Cached,
                         ::testing::Values(llama_json(),
                                           llama_json(R"(, "tie_word_embeddings": true, "attention_bias": true)"),
                                           style_json("mistral", R"(, "sliding_window": 4)"), style_json("qwen2"),
                                           style_json("qwen3"), gpt2_json()),
                         [](const auto& at) { return "case_" + std::to_string(at.index); });

TEST(Generator, LongPromptsGoInChunks) {
  const Rig rig(llama_json());
  const ReferenceBatch batch = random_batch(19, 1, 400);
  Generator whole(rig.model, *rig.backend.device, *rig.backend.ops, 400);
  const auto a = whole.append(batch.tokens);
  Generator pieces(rig.model, *rig.backend.device, *rig.backend.ops, 400);
  static_cast<void>(pieces.append(std::span(batch.tokens).first(100)));
  const auto b = pieces.append(std::span(batch.tokens).subspan(100));
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5 * std::max(1.0F, std::abs(a[i])));
}

// A conversation's next prompt begins with what the cache holds: the same answer as from nothing.
TEST(Generator, KeepsTheCommonPrefix) {
  const Rig rig(llama_json());
  Generator fresh(rig.model, *rig.backend.device, *rig.backend.ops, 60);
  Generator kept(rig.model, *rig.backend.device, *rig.backend.ops, 60);
  GenerateOptions options{.max_new_tokens = 8, .sampling = {}, .stop_at_eos = false};
  std::vector<std::int32_t> prompt{1, 2, 3, 4};
  for (int turn = 0; turn < 4; ++turn) {
    options.keep_common_prefix = false;
    const Generated expected = fresh.generate(prompt, options);
    options.keep_common_prefix = true;
    EXPECT_EQ(kept.generate(prompt, options).tokens, expected.tokens) << "turn " << turn;
    // Once the whole answer, once a part of it, once the same prompt again, once something else.
    if (turn == 0) prompt.insert(prompt.end(), expected.tokens.begin(), expected.tokens.end());
    if (turn == 1) prompt.insert(prompt.end(), {expected.tokens[0], 7, 9});
    if (turn == 2) prompt[2] = 5;
  }
}

TEST(Generator, StopsForTheRightReason) {
  Rig rig(llama_json());
  Generator generator(rig.model, *rig.backend.device, *rig.backend.ops, 10);
  const std::vector<std::int32_t> prompt{1, 2, 3};
  GenerateOptions options;
  options.max_new_tokens = 100;
  options.stop_at_eos = false;
  std::vector<std::int32_t> streamed;
  const auto keep = [&](std::int32_t token) {
    streamed.push_back(token);
    return true;
  };
  const Generated full = generator.generate(prompt, options, keep);
  EXPECT_EQ(full.reason, StopReason::max_positions);
  EXPECT_EQ(full.tokens.size(), 8U);  // seven are fed back, the eighth needs no position
  EXPECT_EQ(streamed, full.tokens);

  rig.model.plan.config.eos_ids = {18, full.tokens[3]};
  options.stop_at_eos = true;
  const auto first = std::ranges::find_first_of(full.tokens, rig.model.plan.config.eos_ids) - full.tokens.begin();
  const Generated ended = generator.generate(prompt, options);
  EXPECT_EQ(ended.reason, StopReason::eos);
  EXPECT_EQ(static_cast<std::ptrdiff_t>(ended.tokens.size()), first + 1);

  const Generated stopped = generator.generate(prompt, {.max_new_tokens = 5, .sampling = {}, .stop_at_eos = false},
                                               [](std::int32_t) { return false; });
  EXPECT_EQ(stopped.reason, StopReason::callback);
  EXPECT_EQ(stopped.tokens.size(), 1U);
  EXPECT_TRUE(generator.generate(prompt, {.max_new_tokens = 0, .sampling = {}, .stop_at_eos = true}).tokens.empty());
}

TEST(Generator, SameSeedSameTokens) {
  const Rig rig(llama_json());
  Generator generator(rig.model, *rig.backend.device, *rig.backend.ops, 64);
  const std::vector<std::int32_t> prompt{1, 2, 3};
  GenerateOptions options{.max_new_tokens = 30,
                          .sampling = {.temperature = 1.5, .top_k = 0, .top_p = 0.95, .seed = 11},
                          .stop_at_eos = false};
  const auto first = generator.generate(prompt, options).tokens;
  EXPECT_EQ(first, generator.generate(prompt, options).tokens);
  options.sampling.seed = 12;
  EXPECT_NE(first, generator.generate(prompt, options).tokens);
}

TEST(Generator, Refuses) {
  const Rig rig(gpt2_json());
  EXPECT_THROW(Generator(rig.model, *rig.backend.device, *rig.backend.ops, 301), UsageError);
  Generator generator(rig.model, *rig.backend.device, *rig.backend.ops, 4);
  EXPECT_THROW(static_cast<void>(generator.append({})), UsageError);
  const std::vector<std::int32_t> five{1, 1, 1, 1, 1}, foreign{19}, negative{-1};
  EXPECT_THROW(static_cast<void>(generator.append(five)), UsageError);
  EXPECT_THROW(static_cast<void>(generator.append(foreign)), DataError);
  EXPECT_THROW(static_cast<void>(generator.append(negative)), DataError);
}

TEST(Generator, AllocatesWhatItSaid) {
  const Rig rig(style_json("qwen3"));
  const std::size_t before = rig.backend.device->bytes_in_use();
  const Generator generator(rig.model, *rig.backend.device, *rig.backend.ops, 50);
  EXPECT_EQ(rig.backend.device->bytes_in_use() - before, Generator::working_bytes(rig.model.plan, 50));
}

}  // namespace
}  // namespace lamina::test
