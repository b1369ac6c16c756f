#include <cmath>
#include <functional>
#include <limits>

#include <lamina/base/error.hpp>
#include <lamina/config/validate.hpp>

#include <gmock/gmock.h>

namespace lamina {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RunConfig sound() {
  RunConfig config;
  config.model.path = std::string("m");
  config.data.train = std::string("d");
  return config;
}

TEST(Validate, SoundConfigHasNoProblem) {
  for (const std::int64_t ranks : {1, 2, 4, 8}) EXPECT_THAT(config_problems(sound(), ranks), IsEmpty());
}

TEST(Validate, EachRuleNamesItsKey) {
  const std::vector<std::pair<std::string, std::function<void(RunConfig&)>>> cases{
      {"run.dir", [](RunConfig& c) { c.run.dir.clear(); }},
      {"run.deadline_s", [](RunConfig& c) { c.run.deadline_s = 0; }},
      {"run.deadline_s", [](RunConfig& c) { c.run.deadline_s = std::nan(""); }},
      {"run.local_deadline_s", [](RunConfig& c) { c.run.local_deadline_s = 0; }},
      {"run.pretend_nodes", [](RunConfig& c) { c.run.pretend_nodes = 3; }},
      {"model.path", [](RunConfig& c) { c.model.path.clear(); }},
      {"data.train", [](RunConfig& c) { c.data.train.clear(); }},
      {"data.validation", [](RunConfig& c) { c.train.eval_every = 5; }},
      {"data.seq_len", [](RunConfig& c) { c.data.seq_len = 0; }},
      {"parallel.prefetch_backward", [](RunConfig& c) { c.parallel.prefetch_backward = 4; }},
      {"parallel.bucket_mb", [](RunConfig& c) { c.parallel.bucket_mb = 0; }},
      {"parallel.bucket_mb", [](RunConfig& c) { c.parallel.bucket_mb = std::nan(""); }},
      {"parallel.reduce_each_micro_step",
       [](RunConfig& c) {
         c.parallel.reduce_each_micro_step = false;
         c.reduction.order = ReductionOrder::rank;
       }},
      {"output.timeline", [](RunConfig& c) { c.output.timeline = "1:101"; }},
      {"output.timeline", [](RunConfig& c) { c.output.timeline = "4:3"; }},
      {"output.timeline", [](RunConfig& c) { c.output.timeline = "0:3"; }},
      {"output.timeline", [](RunConfig& c) { c.output.timeline = "now"; }},
      {"train.steps", [](RunConfig& c) { c.train.steps = 0; }},
      {"train.log_every", [](RunConfig& c) { c.train.log_every = 0; }},
      {"train.global_batch", [](RunConfig& c) { c.train.global_batch = 9; }},
      {"train.global_batch", [](RunConfig& c) { c.train.global_batch = std::int64_t{1} << 62; }},
      {"data.seq_len", [](RunConfig& c) { c.data.seq_len = std::int64_t{1} << 62; }},
      {"train.steps", [](RunConfig& c) { c.train.steps = std::numeric_limits<std::int64_t>::max(); }},
      {"train.eval_sequences", [](RunConfig& c) { c.train.eval_sequences = std::int64_t{1} << 62; }},
      {"train.micro_batch", [](RunConfig& c) { c.train.micro_batch = 3; }},
      {"train.label_smoothing", [](RunConfig& c) { c.train.label_smoothing = 1; }},
      {"train.label_smoothing", [](RunConfig& c) { c.train.label_smoothing = -0.1; }},
      {"train.label_smoothing", [](RunConfig& c) { c.train.label_smoothing = std::nan(""); }},
      {"train.z_loss", [](RunConfig& c) { c.train.z_loss = -1e-4; }},
      {"train.z_loss", [](RunConfig& c) { c.train.z_loss = std::numeric_limits<double>::infinity(); }},
      {"optim.lr", [](RunConfig& c) { c.optim.lr = 0; }},
      {"optim.min_lr", [](RunConfig& c) { c.optim.min_lr = 1; }},
      {"optim.beta1", [](RunConfig& c) { c.optim.beta1 = 1; }},
      {"optim.beta2", [](RunConfig& c) { c.optim.beta2 = -0.1; }},
      {"optim.eps", [](RunConfig& c) { c.optim.eps = 0; }},
      {"optim.weight_decay", [](RunConfig& c) { c.optim.weight_decay = -1; }},
      {"optim.momentum", [](RunConfig& c) { c.optim.momentum = 0.9; }},
      {"optim.momentum", [](RunConfig& c) { c.optim.kind = OptimizerKind::sgd, c.optim.momentum = 1; }},
      {"optim.nesterov", [](RunConfig& c) { c.optim.nesterov = true; }},
      {"optim.nesterov", [](RunConfig& c) { c.optim.kind = OptimizerKind::sgd, c.optim.nesterov = true; }},
      {"optim.beta2", [](RunConfig& c) { c.optim.kind = OptimizerKind::sgd, c.optim.beta2 = 0.9; }},
      {"optim.eps", [](RunConfig& c) { c.optim.kind = OptimizerKind::lion, c.optim.eps = 1e-6; }},
      {"optim.groups", [](RunConfig& c) { c.optim.groups = "norm"; }},
      {"optim.grad_clip", [](RunConfig& c) { c.optim.grad_clip = -1; }},
      {"optim.ema_decay", [](RunConfig& c) { c.optim.ema_decay = 1; }},
      {"optim.muon_momentum", [](RunConfig& c) { c.optim.muon_momentum = 0.9; }},
      {"optim.muon_momentum", [](RunConfig& c) { c.optim.kind = OptimizerKind::muon, c.optim.muon_momentum = 1; }},
      {"optim.muon_nesterov", [](RunConfig& c) { c.optim.muon_nesterov = false; }},
      {"optim.muon_adjust_lr", [](RunConfig& c) { c.optim.muon_adjust_lr = MuonAdjustLr::original; }},
      {"optim.momentum", [](RunConfig& c) { c.optim.kind = OptimizerKind::muon, c.optim.momentum = 0.9; }},
      {"optim.nesterov", [](RunConfig& c) { c.optim.kind = OptimizerKind::muon, c.optim.nesterov = true; }},
      {"optim.ema_decay", [](RunConfig& c) { c.optim.ema_decay = -0.5; }},
      {"optim.warmup", [](RunConfig& c) { c.optim.warmup = 101; }},
      {"optim.warmup", [](RunConfig& c) { c.optim.warmup = 2.5; }},
      {"optim.warmup", [](RunConfig& c) { c.optim.warmup = -0.1; }},
      {"optim.warmup", [](RunConfig& c) { c.optim.warmup = std::nan(""); }},
      {"checkpoint.minutes", [](RunConfig& c) { c.checkpoint.minutes = -1; }},
      {"checkpoint.minutes", [](RunConfig& c) { c.checkpoint.minutes = std::numeric_limits<double>::infinity(); }},
      {"did you mean run.seed", [](RunConfig& c) { c.run.allow_drift = "data.train, run.sede"; }},
      {"run.allow_drift", [](RunConfig& c) { c.run.allow_drift = "optim.lr"; }},
      {"optim.decay", [](RunConfig& c) { c.optim.decay = 5; }},
      {"parallel.prefetch", [](RunConfig& c) { c.parallel.prefetch = 4; }},
      {"compute.threads", [](RunConfig& c) { c.compute.threads = 0; }},
  };
  for (const auto& [key, spoil] : cases) {
    RunConfig config = sound();
    spoil(config);
    EXPECT_THAT(config_problems(config, 2), Contains(HasSubstr(key))) << key;
  }
}

TEST(Validate, EachOptimizerKindIsSoundWithItsOwnOptions) {
  RunConfig config = sound();
  config.optim.groups = "*.norm.*:decay=0:lr=0.5";
  for (const OptimizerKind kind :
       {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::lion, OptimizerKind::muon, OptimizerKind::sgd}) {
    config.optim.kind = kind;
    EXPECT_THAT(config_problems(config, 1), IsEmpty());
  }
  config.optim.momentum = 0.9;
  config.optim.nesterov = true;
  EXPECT_THAT(config_problems(config, 1), IsEmpty());
  config.optim = {};
  config.optim.kind = OptimizerKind::muon;
  config.optim.muon_momentum = 0.9;
  config.optim.muon_nesterov = false;
  config.optim.muon_adjust_lr = MuonAdjustLr::original;
  config.optim.beta1 = 0.8;
  config.optim.beta2 = 0.99;
  config.optim.eps = 1e-6;
  EXPECT_THAT(config_problems(config, 1), IsEmpty());
}

TEST(Validate, BatchMustFitTheWorld) {
  RunConfig config = sound();
  EXPECT_THAT(config_problems(config, 9), ElementsAre(HasSubstr("9 ranks")));
  EXPECT_THAT(config_problems(config, 3), ElementsAre(HasSubstr("3 x 1")));
  config.train.global_batch = 12;
  config.train.micro_batch = 2;
  for (const std::int64_t ranks : {1, 2, 3, 6}) EXPECT_THAT(config_problems(config, ranks), IsEmpty()) << ranks;
  for (const std::int64_t ranks : {4, 5, 12}) EXPECT_THAT(config_problems(config, ranks), testing::SizeIs(1)) << ranks;
  config.train.micro_batch = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(config_problems(config, 4), testing::SizeIs(1));
}

TEST(Validate, ShortRunsKeepTheDefaultWarmup) {
  RunConfig config = sound();
  for (const std::int64_t steps : {1, 2, 7, 20}) {
    config.train.steps = steps;
    EXPECT_THAT(config_problems(config, 1), IsEmpty()) << steps;
  }
}

TEST(Validate, DecayOfWsdFitsBehindTheWarmup) {
  RunConfig config = sound();
  config.optim.schedule = ScheduleKind::wsd;
  config.optim.warmup = 60;
  config.optim.decay = 40;
  EXPECT_THAT(config_problems(config, 1), IsEmpty());
  config.optim.decay = 41;
  EXPECT_THAT(config_problems(config, 1), ElementsAre(HasSubstr("optim.decay is 41")));
}

TEST(Validate, AllProblemsAtOnce) {
  RunConfig config;
  config.train.steps = 0;
  config.optim.lr = -1;
  EXPECT_GE(config_problems(config, 1).size(), 4U);
  EXPECT_THROW(check_config(config, 1), UsageError);
  EXPECT_NO_THROW(check_config(sound(), 1));
}

}  // namespace
}  // namespace lamina
