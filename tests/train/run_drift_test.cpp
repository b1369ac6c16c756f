#include <functional>

#include <lamina/base/error.hpp>
#include <lamina/config/command_line.hpp>
#include <lamina/config/drift_keys.hpp>
#include <lamina/train/run_drift.hpp>

#include <gmock/gmock.h>

namespace lamina {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string model_json(const std::string& more = "") {
  return R"({"model_type": "llama", "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 1,
    "num_attention_heads": 3, "num_key_value_heads": 1, "vocab_size": 257, "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": true)" +
         more + "}";
}

class RunDriftTest : public testing::Test {
 protected:
  RunDriftTest() {
    config_.model.path = "model";
    config_.data.train = "a.txt";
    saved_.step = 5;
    saved_.next_sample = 60;
    saved_.config_text = to_ini(config_);
    saved_.model_config_json = identity_.model_json;
    saved_.data_identity = identity_.data;
    saved_.tokenizer_identity = identity_.tokenizer;
    saved_.validation_identity = identity_.validation;
  }

  [[nodiscard]] RunDrift compare() const { return compare_runs(saved_, "run/step_5", config_, identity_); }
  [[nodiscard]] std::string refusal() const {
    try {
      static_cast<void>(compare());
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  RunConfig config_;
  RunIdentity identity_{model_json(), "7 tokens ab", "cd", "3 tokens ef"};
  Manifest saved_;
};

TEST_F(RunDriftTest, TheSameRunIsNoDrift) {
  config_.run.dir = "elsewhere";
  config_.data.train = "moved.txt";
  config_.model.path = "moved";
  config_.parallel.strategy = Strategy::no_shard;
  config_.train.micro_batch = 2;
  config_.checkpoint.every = 7;
  identity_.model_json = model_json(R"(, "torch_dtype": "bfloat16", "initializer_range": 0.5)");
  EXPECT_EQ(refusal(), "");
  EXPECT_THAT(describe_told(compare()), IsEmpty());
  EXPECT_THAT(describe_allowed(compare(), saved_), IsEmpty());
}

TEST_F(RunDriftTest, EachKeyIsRefusedWithBothValuesAndTheOptionThatAllowsIt) {
  struct Case {
    std::string key, before, now;
    std::function<void(RunConfig&, RunIdentity&)> change;
    bool new_order;
  };
  const std::vector<Case> cases{
      {"run.seed", "0", "4", [](RunConfig& c, RunIdentity&) { c.run.seed = 4; }, true},
      {"model.path", "config.json with rope_theta absent", "rope_theta 500000.0",
       [](RunConfig&, RunIdentity& i) { i.model_json = model_json(R"(, "rope_theta": 5e5)"); }, false},
      {"data.train", "a.txt (7 tokens ab)", "a.txt (8 tokens ef)",
       [](RunConfig&, RunIdentity& i) { i.data = "8 tokens ef"; }, true},
      {"data.seq_len", "256", "128", [](RunConfig& c, RunIdentity&) { c.data.seq_len = 128; }, true},
      {"data.tokenizer", "auto (cd)", "auto (ef)", [](RunConfig&, RunIdentity& i) { i.tokenizer = "ef"; }, false},
      {"data.tokenizer", "auto (cd)", "auto (none)", [](RunConfig&, RunIdentity& i) { i.tokenizer = ""; }, false},
      {"data.document_mask", "no", "yes", [](RunConfig& c, RunIdentity&) { c.data.document_mask = true; }, false},
      {"data.last_batch", "wrap", "pad", [](RunConfig& c, RunIdentity&) { c.data.last_batch = LastBatch::pad; }, true},
      {"train.global_batch", "8", "16", [](RunConfig& c, RunIdentity&) { c.train.global_batch = 16; }, false},
      {"train.label_smoothing", "0", "0.1", [](RunConfig& c, RunIdentity&) { c.train.label_smoothing = 0.1; }, false},
      {"train.z_loss", "0", "0.5", [](RunConfig& c, RunIdentity&) { c.train.z_loss = 0.5; }, false},
  };
  const RunConfig config = config_;
  const RunIdentity identity = identity_;
  for (const Case& c : cases) {
    config_ = config;
    identity_ = identity;
    c.change(config_, identity_);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(c.key + " was "), HasSubstr(c.before), HasSubstr(c.now),
                                 HasSubstr("--run.allow_drift " + c.key), Not(HasSubstr("\n"))));
    config_.run.allow_drift = c.key;
    EXPECT_EQ(refusal(), "");
    EXPECT_EQ(compare().new_order, c.new_order) << c.key;
    EXPECT_THAT(describe_allowed(compare(), saved_),
                AllOf(HasSubstr(c.key), HasSubstr(c.new_order ? "step 6 begins the data anew" : "sample 60")));
  }
}

TEST_F(RunDriftTest, SeveralAreToldAtOnce) {
  config_.run.seed = 4;
  config_.data.seq_len = 128;
  config_.run.allow_drift = "train.z_loss";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("run.seed was 0 and is 4"), HasSubstr("data.seq_len was 256 and is 128"),
                               HasSubstr("--run.allow_drift run.seed,data.seq_len")));
}

TEST_F(RunDriftTest, WhereEpochsEndInBatchesAnotherBatchIsAnotherOrder) {
  config_.data.last_batch = LastBatch::pad;
  saved_.config_text = to_ini(config_);
  config_.train.global_batch = 16;
  config_.run.allow_drift = " train.global_batch , run.seed";
  EXPECT_TRUE(compare().new_order);
}

TEST_F(RunDriftTest, WhatPeopleChangeIsTold) {
  config_.optim.lr = 1e-3;
  config_.data.validation = "v.txt";
  EXPECT_THAT(describe_told(compare()),
              AllOf(HasSubstr("optim.lr 0.001 (was 0.0003)"), HasSubstr("data.validation v.txt (was empty)")));
}

TEST_F(RunDriftTest, OtherValidationDataUnderTheSameNameAreTold) {
  config_.data.validation = "v.txt";
  saved_.config_text = to_ini(config_);
  EXPECT_THAT(describe_told(compare()), IsEmpty());
  identity_.validation = "3 tokens 01";
  EXPECT_THAT(describe_told(compare()), HasSubstr("data.validation v.txt (3 tokens 01) (was v.txt (3 tokens ef))"));
}

// Of every option somebody has decided whether it may change on resume.
TEST(DriftKeys, AreOptions) {
  for (const DriftKey& key : drift_keys()) {
    const bool known =
        std::ranges::any_of(config_options(), [&](const ConfigOption& o) { return o.name() == key.name; });
    EXPECT_TRUE(known) << key.name;
    EXPECT_FALSE(told_on_resume(key.name));
  }
  EXPECT_TRUE(told_on_resume("optim.lr"));
  EXPECT_FALSE(told_on_resume("parallel.strategy"));
}

}  // namespace
}  // namespace lamina
