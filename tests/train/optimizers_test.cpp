// Every kind of optimizer under law 1: the same bits for every world size, strategy and across save and resume. One
// rank that holds everything decides.
#include "train/shared_folder.hpp"
#include "train/training_world.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>

#include <lamina/train/checkpointer.hpp>

#include <gmock/gmock.h>
#include <unistd.h>

namespace lamina::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t steps = 8;

const mpi::Communicator& world() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(120));
  return comm;
}

std::map<std::string, OptimSection> all_kinds() {
  const OptimSection base = small_run().optim;
  std::map<std::string, OptimSection> kinds;
  const auto add = [&](const std::string& name, OptimizerKind kind) -> OptimSection& {
    OptimSection& optim = kinds.emplace(name, base).first->second;
    optim.kind = kind;
    return optim;
  };
  add("adamw", OptimizerKind::adamw);
  add("adam", OptimizerKind::adam);
  OptimSection& sgd = add("sgd", OptimizerKind::sgd);
  sgd.lr = 0.5;
  OptimSection& momentum = add("sgd with momentum", OptimizerKind::sgd);
  momentum.lr = 0.3;
  momentum.momentum = 0.9;
  OptimSection& nesterov = add("sgd nesterov", OptimizerKind::sgd);
  nesterov.lr = 0.3;
  nesterov.momentum = 0.8;
  nesterov.nesterov = true;
  OptimSection& lion = add("lion", OptimizerKind::lion);
  lion.lr = 5e-3;
  lion.beta2 = 0.99;
  OptimSection& groups = add("groups", OptimizerKind::adamw);
  groups.groups = "*.mlp.*:lr=0.5, *norm*:decay=0.2:lr=2, *.q_proj.weight:lr=0";
  add("averaged", OptimizerKind::lion).ema_decay = 0.8;
  return kinds;
}

RunConfig config_of(const OptimSection& optim, Strategy strategy) {
  RunConfig config = small_run();
  config.optim = optim;
  config.parallel.strategy = strategy;
  const bool hybrid = strategy == Strategy::hybrid || strategy == Strategy::hybrid_optimizer;
  if (hybrid) config.parallel.shard_size = world().size() % 2 == 0 ? 2 : world().size();
  return config;
}

// This rank alone, not sharded.
const mpi::Communicator& self() {
  static const mpi::Communicator comm = world().split(world().rank(), 0);
  return comm;
}

RunRecord alone(const OptimSection& optim) {
  TrainingWorld training(self(), small_model("tied"), config_of(optim, Strategy::no_shard));
  return run_training(training, steps);
}

// This rank's part of the averaged weights, bit by bit; `whole` holds all of them.
void expect_same_average(TrainingWorld& training, TrainingWorld& whole, const std::string& what) {
  for (std::size_t unit = 0; unit < training.store().unit_count(); ++unit) {
    const OptimizerShard shard = training.store().optimizer_shard(unit);
    const std::span<const float> all = whole.store().optimizer_shard(unit).ema;
    ASSERT_EQ(shard.ema.size(), shard.param.size()) << what;
    for (std::size_t i = 0; i < shard.ema.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(shard.range.begin) + i;
      ASSERT_EQ(shard.ema[i], at < all.size() ? all[at] : 0.0F) << what << " unit " << unit << " element " << at;
    }
  }
}

void expect_same(const RunRecord& run, const RunRecord& expected, const std::string& what) {
  EXPECT_EQ(run.losses, expected.losses) << what;
  EXPECT_EQ(run.norms, expected.norms) << what;
  EXPECT_EQ(run.validation, expected.validation) << what;
  EXPECT_TRUE(run.weights == expected.weights) << what << ": the final weights differ";
}

TEST(Optimizers, SameBitsForEveryKindAndStrategy) {
  for (const auto& [name, optim] : all_kinds()) {
    const RunRecord expected = alone(optim);
    EXPECT_LT(expected.losses.back(), expected.losses.front()) << name << " learns";
    for (const Strategy strategy : {Strategy::shard_optimizer, Strategy::full, Strategy::hybrid_optimizer}) {
      TrainingWorld training(world(), small_model("tied"), config_of(optim, strategy));
      expect_same(run_training(training, steps), expected, name + " " + std::string(name_of(strategy)));
    }
  }
}

// After every step against the formula, over the weights themselves; then every strategy against this one rank.
TEST(Optimizers, AveragedWeightsHaveTheSameBits) {
  OptimSection optim = small_run().optim;
  optim.ema_decay = 0.8;
  TrainingWorld whole(self(), small_model("tied"), config_of(optim, Strategy::no_shard));
  std::vector<std::vector<float>> expected;
  for (std::size_t unit = 0; unit < whole.store().unit_count(); ++unit) {
    const std::span<const float> first = whole.store().optimizer_shard(unit).param;
    expected.emplace_back(first.begin(), first.end());
  }
  for (std::int64_t step = 1; step <= steps; ++step) {
    const auto first = static_cast<std::uint64_t>((step - 1) * whole.config().train.global_batch);
    static_cast<void>(whole.engine().run(whole.batches(), step, first, false));
    for (std::size_t unit = 0; unit < expected.size(); ++unit) {
      const OptimizerShard shard = whole.store().optimizer_shard(unit);
      for (std::size_t i = 0; i < expected[unit].size(); ++i) {
        expected[unit][i] += static_cast<float>(1 - 0.8) * (shard.param[i] - expected[unit][i]);
      }
      ASSERT_TRUE(std::ranges::equal(shard.ema, expected[unit])) << "step " << step << " unit " << unit;
    }
  }
  for (const Strategy strategy : {Strategy::no_shard, Strategy::shard_optimizer, Strategy::shard_grad_op,
                                  Strategy::full, Strategy::hybrid, Strategy::hybrid_optimizer}) {
    TrainingWorld training(world(), small_model("tied"), config_of(optim, strategy));
    static_cast<void>(run_training(training, steps));
    expect_same_average(training, whole, std::string(name_of(strategy)));
  }
}

TEST(Optimizers, KindsDiffer) {
  std::map<std::string, RunRecord> records;
  for (const auto& [name, optim] : all_kinds()) {
    if (name != "averaged") records[name] = alone(optim);  // it does not change what is trained
  }
  for (const auto& [name, record] : records) {
    for (const auto& [other, of_other] : records) {
      if (name == other) continue;
      EXPECT_FALSE(record.weights == of_other.weights) << name << " and " << other;
    }
  }
}

TEST(Optimizers, StateIsAllocatedOnlyWhereItIsUsed) {
  for (const auto& [name, optim] : all_kinds()) {
    const ModelPlan plan = small_model("untied");
    TrainingWorld training(world(), plan, config_of(optim, Strategy::full));
    EXPECT_EQ(training.store_plan().moments, moment_count(optim));
    const std::uint64_t activations = ModelRunner::activation_bytes(plan, 1, sequence_length, true);
    EXPECT_EQ(training.device().bytes_in_use(), state_bytes(training.store_plan(), world().size()) + activations);
    std::uint64_t shards = 0;
    for (const UnitSpec& unit : plan.units) {
      shards += sizeof(float) * static_cast<std::uint64_t>(FlatLayout(unit, world().size()).block_elements());
    }
    EXPECT_EQ(state_bytes(training.store_plan(), world().size()),
              shards * (2 + static_cast<std::uint64_t>(moment_count(optim)) + (optim.ema_decay > 0 ? 1 : 0)))
        << name;
  }
}

// A tensor whose learning rate is multiplied by 0 stays as it was; the others move.
TEST(Optimizers, AGroupReachesItsTensorsOnly) {
  OptimSection optim = small_run().optim;
  optim.groups = "model.layers.1.*:lr=0";
  TrainingWorld training(world(), small_model("untied"), config_of(optim, Strategy::full));
  const auto before = training.weights();
  static_cast<void>(run_training(training, 2));
  const auto after = training.weights();
  std::size_t frozen = 0;
  for (const auto& [tensor, values] : before) {
    const bool fixed = tensor.starts_with("model.layers.1.");
    frozen += fixed ? 1 : 0;
    EXPECT_EQ(values == after.at(tensor), fixed) << tensor;
  }
  EXPECT_EQ(frozen, 12u);
}

class Resuming : public testing::Test {
 protected:
  [[nodiscard]] RunConfig config(const OptimSection& optim, Strategy strategy) const {
    RunConfig config = config_of(optim, strategy);
    config.run.dir = folder_.path().string();
    return config;
  }

  // Saves after `count` steps of a run.
  std::string save(const OptimSection& optim, std::int64_t count, RunRecord& record) {
    TrainingWorld training(world(), small_model("tied"), config(optim, Strategy::full));
    record = run_training(training, count);
    Checkpointer checkpointer(world(), training.store(), training.config(), {"{}", "", "", ""}, {});
    const auto next = static_cast<std::uint64_t>(count * training.config().train.global_batch);
    return world().broadcast(checkpointer.save({count, next, 1}).string(), 0, "the checkpoint");
  }

  // What loading says, on every rank.
  std::string refusal(const OptimSection& optim, const std::string& saved) {
    TrainingWorld training(world(), small_model("tied"), config(optim, Strategy::full));
    Checkpointer checkpointer(world(), training.store(), training.config(), {"{}", "", "", ""}, {});
    try {
      static_cast<void>(checkpointer.load(saved));
    } catch (const mpi::AgreedError& error) {
      return error.what();
    }
    return "nothing";
  }

  SharedFolder folder_{world(), "optimizers"};
};

TEST_F(Resuming, GoesOnWithTheSameBits) {
  for (const auto& [name, optim] : all_kinds()) {
    const RunRecord expected = alone(optim);
    RunRecord before;
    const std::string saved = save(optim, 3, before);
    const Strategy strategy = world().size() == 3 ? Strategy::no_shard : Strategy::hybrid_optimizer;
    TrainingWorld training(world(), small_model("tied"), config(optim, strategy));
    Checkpointer checkpointer(world(), training.store(), training.config(), {"{}", "", "", ""}, {});
    EXPECT_EQ(checkpointer.load(saved).step, 3);
    for (std::int64_t step = 4; step <= steps; ++step) {
      const auto first = static_cast<std::uint64_t>((step - 1) * training.config().train.global_batch);
      const StepResult result = training.engine().run(training.batches(), step, first, false);
      EXPECT_EQ(result.loss, expected.losses[static_cast<std::size_t>(step - 1)]) << name << " step " << step;
    }
    EXPECT_TRUE(training.weights() == expected.weights) << name;
  }
}

TEST_F(Resuming, AveragedWeightsGoOnToo) {
  OptimSection optim = small_run().optim;
  optim.ema_decay = 0.9;
  RunRecord before;
  const std::string saved = save(optim, 3, before);
  TrainingWorld training(world(), small_model("tied"), config(optim, Strategy::shard_optimizer));
  Checkpointer checkpointer(world(), training.store(), training.config(), {"{}", "", "", ""}, {});
  static_cast<void>(checkpointer.load(saved));
  TrainingWorld whole(self(), small_model("tied"), config_of(optim, Strategy::no_shard));
  static_cast<void>(run_training(whole, 3));
  expect_same_average(training, whole, "loaded");
  for (TrainingWorld* run : {&training, &whole}) {
    for (std::int64_t step = 4; step <= steps; ++step) {
      const auto first = static_cast<std::uint64_t>((step - 1) * run->config().train.global_batch);
      static_cast<void>(run->engine().run(run->batches(), step, first, false));
    }
  }
  expect_same_average(training, whole, "gone on");
}

TEST_F(Resuming, AveragedWeightsAreNeitherLostNorInvented) {
  OptimSection plain = small_run().optim, averaging = plain;
  averaging.ema_decay = 0.9;
  RunRecord record;
  EXPECT_THAT(refusal(plain, save(averaging, 2, record)), HasSubstr("optim.ema_decay is 0"));
  const std::string saved = save(plain, 3, record);
  TrainingWorld training(world(), small_model("tied"), config(averaging, Strategy::full));
  Checkpointer checkpointer(world(), training.store(), training.config(), {"{}", "", "", ""}, {});
  EXPECT_EQ(checkpointer.load(saved).step, 3);  // the average begins as the weights
  for (std::size_t unit = 0; unit < training.store().unit_count(); ++unit) {
    const OptimizerShard shard = training.store().optimizer_shard(unit);
    EXPECT_TRUE(std::ranges::equal(shard.ema, shard.param));
  }
}

TEST_F(Resuming, AnotherKindIsRefused) {
  const auto kinds = all_kinds();
  RunRecord record;
  const std::string saved = save(kinds.at("adamw"), 1, record);
  for (const std::string other : {"adam", "lion", "sgd with momentum"}) {
    EXPECT_THAT(refusal(kinds.at(other), saved),
                AllOf(HasSubstr(std::string("optim.kind is ") + std::string(name_of(kinds.at(other).kind))),
                      HasSubstr("saved with adamw")));
  }
  const std::string plain = save(kinds.at("sgd"), 2, record);
  EXPECT_THAT(refusal(kinds.at("sgd with momentum"), plain), HasSubstr("without momentum"));
  EXPECT_THAT(refusal(kinds.at("lion"), plain), HasSubstr("saved with sgd"));
  const std::string moving = save(kinds.at("sgd with momentum"), 3, record);
  EXPECT_THAT(refusal(kinds.at("sgd"), moving), HasSubstr("with momentum"));
}

}  // namespace
}  // namespace lamina::test
