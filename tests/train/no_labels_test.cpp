// A step whose global batch has no label: nothing changes on any rank, under every strategy and optimizer.
#include "train/training_world.hpp"

#include <chrono>
#include <cmath>

#include <lamina/train/initialise.hpp>
#include <lamina/train/skipped_steps.hpp>

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

const mpi::Communicator& world() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(120));
  return comm;
}

RunConfig config_of(Strategy strategy, OptimizerKind optimizer) {
  RunConfig config = small_run();
  config.parallel.strategy = strategy;
  config.optim.kind = optimizer;
  config.optim.weight_decay = 0.5;
  config.optim.ema_decay = 0.5;
  return config;
}

// Everything that an update would change.
std::vector<float> state_of(WeightStore& store) {
  std::vector<float> all;
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    const OptimizerShard shard = store.optimizer_shard(unit);
    for (const std::span<float> part : {shard.param, shard.exp_avg, shard.exp_avg_sq, shard.ema})
      all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// The run's batches, without labels in step 2.
LoadBatch with_a_gap(TrainingWorld& training, std::vector<std::int32_t>& labels) {
  return [&training, &labels](std::uint64_t first, std::int64_t count) {
    MicroBatch batch = training.batches()(first, count);
    if (first / 12 != 1) return batch;
    labels.assign(batch.labels.size(), ignored_label);
    batch.labels = labels;
    return batch;
  };
}

TEST(NoLabels, AStepWithoutAnyChangesNothing) {
  for (const Strategy strategy : {Strategy::no_shard, Strategy::shard_optimizer, Strategy::full}) {
    for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::lion}) {
      RunConfig config = config_of(strategy, optimizer);
      config.train.skip_nonfinite = optimizer == OptimizerKind::sgd;  // makes no difference
      TrainingWorld training(world(), small_model("tied"), config);
      std::vector<std::int32_t> labels;
      const LoadBatch load = with_a_gap(training, labels);
      RunState state;
      for (std::int64_t step = 1; step <= 3; ++step) {
        const std::vector<float> before = state_of(training.store());
        const StepResult result =
            training.engine().run(load, step, static_cast<std::uint64_t>(12 * (step - 1)), false, state.updates + 1);
        count_update(result, state);
        EXPECT_EQ(result.skipped, step == 2);
        EXPECT_EQ(result.no_labels, step == 2);
        EXPECT_EQ(std::isnan(result.loss), step == 2) << "a loss of 0 would look perfect";
        EXPECT_EQ(result.grad_norm == 0, step == 2);
        if (step == 2) {
          EXPECT_EQ(result.tokens, 0);
          EXPECT_TRUE(state_of(training.store()) == before) << name_of(strategy);
          EXPECT_NE(skip_warning(result, state).find("no token has a label"), std::string::npos);
        }
      }
      EXPECT_EQ(state.updates, 2) << "Adam's bias correction counts updates";
      EXPECT_EQ(state.skipped, 1);
      EXPECT_EQ(state.skipped_in_a_row, 0);
    }
  }
}

TEST(NoLabels, AGapIsAsIfTheStepWereNotThere) {
  // With a constant learning rate the weights are those of a run without the step.
  RunConfig config = config_of(Strategy::full, OptimizerKind::adamw);
  config.optim.schedule = ScheduleKind::constant;
  config.optim.warmup = 0;
  TrainingWorld gap(world(), small_model("tied"), config), plain(world(), small_model("tied"), config);
  std::vector<std::int32_t> labels;
  const LoadBatch load = with_a_gap(gap, labels);
  std::int64_t update = 1;
  for (const std::int64_t step : {1, 2, 3}) {
    const auto first = static_cast<std::uint64_t>(12 * (step - 1));
    static_cast<void>(gap.engine().run(load, step, first, false, update));
    if (step == 2) continue;
    static_cast<void>(plain.engine().run(plain.batches(), step, first, false, update++));
  }
  EXPECT_TRUE(gap.weights() == plain.weights());
}

TEST(NoLabels, AnEvaluationWithoutAnyHasNoLoss) {
  TrainingWorld training(world(), small_model("tied"), config_of(Strategy::full, OptimizerKind::adamw));
  std::vector<std::int32_t> labels;
  const EvaluationResult result = training.engine().evaluate(
      [&](std::uint64_t first, std::int64_t count) {
        MicroBatch batch = training.batches()(first, count);
        labels.assign(batch.labels.size(), ignored_label);
        batch.labels = labels;
        return batch;
      },
      5);
  EXPECT_TRUE(std::isnan(result.loss));
  EXPECT_EQ(result.tokens, 0);
}

}  // namespace
}  // namespace lamina::test
