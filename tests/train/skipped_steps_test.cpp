// A gradient that is not finite on one rank: all ranks skip the same step, and nothing but the step's number changes.
#include "train/oracle.hpp"
#include "train/shared_folder.hpp"
#include "train/training_world.hpp"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include <lamina/train/initialise.hpp>
#include <lamina/train/skipped_steps.hpp>
#include <lamina/train/start_choice.hpp>
#include <lamina/train/trainer.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lamina::test {
namespace {

constexpr std::int64_t last_step = 8;

const mpi::Communicator& world() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(120));
  return comm;
}

RunConfig config_of(Strategy strategy) {
  RunConfig config = small_run();
  config.train.steps = last_step;
  config.train.skip_nonfinite = true;
  config.parallel.strategy = strategy;
  const bool hybrid = strategy == Strategy::hybrid || strategy == Strategy::hybrid_optimizer;
  if (hybrid) config.parallel.shard_size = world().size() % 2 == 0 ? 2 : world().size();
  return config;
}

// Makes one element infinite that only this rank's part of the gradient sums has.
void spoil_own_sum(WeightStore& store) {
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    const FlatRange own = store.counted_range(unit);
    if (own.length() == 0) continue;
    const OptimizerShard shard = store.optimizer_shard(unit);
    shard.grad[static_cast<std::size_t>(own.begin - shard.range.begin)] = std::numeric_limits<float>::infinity();
    return;
  }
  FAIL() << "this rank owns padding only";
}

// Blocks are long and the model is small: the last of many ranks have nothing.
bool owns_something(TrainingWorld& training, int rank) {
  WeightStore& store = training.store();
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    if (store.layout(unit).owned_range(training.topology().block_of(rank)).length() > 0) return true;
  }
  return false;
}

// The world's batches; on `rank`, the steps that `spoiled` names begin with an infinite gradient sum.
LoadBatch spoiling(TrainingWorld& training, int rank, std::function<bool(std::int64_t step)> spoiled) {
  return [&training, rank, spoiled = std::move(spoiled)](std::uint64_t first, std::int64_t count) {
    const auto sample = static_cast<std::int64_t>(first);
    const std::int64_t batch = training.config().train.global_batch;
    const bool first_micro_step = sample % batch < count * world().size();
    if (world().rank() == rank && first_micro_step && spoiled(sample / batch + 1)) spoil_own_sum(training.store());
    return training.batches()(first, count);
  };
}

// Weights and moments that this rank updates.
std::vector<float> state_of(WeightStore& store) {
  std::vector<float> all;
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    const OptimizerShard shard = store.optimizer_shard(unit);
    for (const std::span<float> part : {shard.param, shard.exp_avg, shard.exp_avg_sq})
      all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

StepResult step_of(TrainingWorld& training, const LoadBatch& load, const RunState& state) {
  return training.engine().run(load, state.step + 1, state.next_sample, false, state.updates + 1);
}

void count(const StepResult& result, RunState& state) {
  state.step = result.step;
  state.next_sample += 12;
  count_update(result, state);
}

TEST(SkippedSteps, OneRanksInfinitySkipsTheStepEverywhere) {
  const RunRecord expected = run_oracle(small_model("untied"), config_of(Strategy::full), last_step, {3, 6});
  for (const Strategy strategy : {Strategy::no_shard, Strategy::shard_optimizer, Strategy::shard_grad_op,
                                  Strategy::full, Strategy::hybrid, Strategy::hybrid_optimizer}) {
    for (int rank = 0; rank < world().size(); ++rank) {
      TrainingWorld training(world(), small_model("untied", "size:1000000"), config_of(strategy));
      if (!owns_something(training, rank)) continue;
      const LoadBatch load = spoiling(training, rank, [](std::int64_t step) { return step % 3 == 0; });
      RunState state;
      std::vector<double> losses;
      while (state.step < last_step) {
        const std::vector<float> before = state_of(training.store());
        const StepResult result = step_of(training, load, state);
        count(result, state);
        losses.push_back(result.loss);
        const std::string what =
            std::string(name_of(strategy)) + " rank " + std::to_string(rank) + " step " + std::to_string(result.step);
        EXPECT_EQ(result.skipped, result.step % 3 == 0) << what;
        EXPECT_EQ(std::isnan(result.grad_norm), result.skipped) << what;
        if (result.skipped || world().rank() == 0) {  // the last ranks may own nothing that could change
          EXPECT_EQ(state_of(training.store()) == before, result.skipped) << what;
        }
      }
      EXPECT_EQ(state.updates, 6);
      EXPECT_EQ(state.skipped, 2);
      EXPECT_EQ(losses, expected.losses);
      EXPECT_TRUE(training.weights() == expected.weights) << name_of(strategy) << " rank " << rank;
    }
  }
}

// One token's row of the embedding is infinite, and one rank has that token: its loss and its gradients are NaN, the
// others' are not.
TEST(SkippedSteps, OneRanksBatchSkipsTheStepEverywhere) {
  constexpr std::int32_t bad_token = 28;
  for (int rank = 0; rank < world().size(); ++rank) {
    TrainingWorld training(world(), small_model("untied"), config_of(Strategy::full));
    const OptimizerShard shard = training.store().optimizer_shard(0);
    for (std::int64_t i = bad_token * 12; i < (bad_token + 1) * 12; ++i) {
      if (i < shard.range.begin || i >= shard.range.end) continue;
      shard.param[static_cast<std::size_t>(i - shard.range.begin)] = std::numeric_limits<float>::infinity();
    }
    publish_all(training.store());
    std::vector<std::int32_t> tokens;
    const LoadBatch load = [&](std::uint64_t first, std::int64_t count) {
      MicroBatch batch = training.batches()(first, count);
      tokens.assign(batch.tokens.begin(), batch.tokens.end());
      for (std::int32_t& token : tokens) token %= bad_token;
      if (first / 12 == 1 && world().rank() == rank) tokens.front() = bad_token;
      batch.tokens = tokens;
      return batch;
    };
    RunState state;
    for (std::int64_t step = 1; step <= 4; ++step) {
      const std::vector<float> before = state_of(training.store());
      const StepResult result = step_of(training, load, state);
      count(result, state);
      EXPECT_EQ(result.skipped, step == 2) << "rank " << rank << " step " << step;
      EXPECT_EQ(std::isnan(result.loss), step == 2);
      if (step == 2 || world().rank() == 0) {
        EXPECT_EQ(state_of(training.store()) == before, step == 2);
      }
    }
    EXPECT_EQ(state.updates, 3);
  }
}

TEST(SkippedSteps, AreErrorsUnlessAllowed) {
  RunConfig config = config_of(Strategy::full);
  config.train.skip_nonfinite = false;
  TrainingWorld training(world(), small_model("tied"), config);
  const LoadBatch load = spoiling(training, 0, [](std::int64_t) { return true; });
  const std::vector<float> before = state_of(training.store());
  try {
    static_cast<void>(step_of(training, load, {}));
    FAIL() << "the step was accepted";
  } catch (const mpi::AgreedError& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_NE(std::string(error.what()).find("diverged"), std::string::npos);
  }
  EXPECT_TRUE(state_of(training.store()) == before);
}

TEST(SkippedSteps, AModelThatDivergesByItselfIsLeftAlone) {
  RunConfig config = config_of(Strategy::full);
  config.optim.lr = 1e38;
  config.optim.warmup = 0;
  TrainingWorld training(world(), small_model("tied"), config);
  RunState state;
  count(step_of(training, training.batches(), state), state);
  EXPECT_EQ(state.updates, 1);
  const std::vector<float> before = state_of(training.store());
  const StepResult result = step_of(training, training.batches(), state);
  EXPECT_FALSE(std::isfinite(result.loss));
  EXPECT_TRUE(result.skipped);
  EXPECT_TRUE(state_of(training.store()) == before);
}

class SkippingTrainer : public ::testing::Test {
 protected:
  void SetUp() override { config_.run.dir = folder_.path().string(); }

  // Runs as a start of the program would: from the newest checkpoint, or fresh. Rank 0's sums are spoiled.
  TrainEnd run(const std::function<bool(std::int64_t step)>& spoiled) {
    training_ = std::make_unique<TrainingWorld>(world(), small_model("untied"), config_);
    Checkpointer checkpointer(world(), training_->store(), training_->config(), {"{}", "", "", ""}, {});
    const StartChoice choice = choose_start(config_.run);
    std::string chosen = choice.candidates.empty() ? "" : choice.candidates.front().string();
    chosen = world().broadcast(chosen, 0, "the checkpoint");
    state_ = chosen.empty() ? RunState() : checkpointer.load(chosen);
    resumed_ = state_;
    return train(training_->context(), {spoiling(*training_, 0, spoiled), {}, 0}, checkpointer, state_,
                 [] { return false; }, {});
  }

  SharedFolder folder_{world(), "skipped"};
  RunConfig config_ = config_of(Strategy::full);
  std::unique_ptr<TrainingWorld> training_;
  RunState state_, resumed_;
};

TEST_F(SkippingTrainer, CountsLogsAndGoesOnAfterASave) {
  const std::set<std::int64_t> skipped{3, 4, 6};
  const auto spoiled = [&](std::int64_t step) { return skipped.contains(step); };
  config_.train.stop_at = 4;
  EXPECT_EQ(run(spoiled), TrainEnd::stopped_at);
  config_.train.stop_at = 0;
  EXPECT_EQ(run(spoiled), TrainEnd::finished);
  EXPECT_EQ(resumed_.step, 4);
  EXPECT_EQ(resumed_.updates, 2);
  EXPECT_EQ(resumed_.skipped, 2);
  EXPECT_EQ(resumed_.skipped_in_a_row, 2);
  EXPECT_EQ(state_.step, 8);
  EXPECT_EQ(state_.updates, 5);
  EXPECT_EQ(state_.skipped, 3);
  EXPECT_EQ(state_.skipped_in_a_row, 0);
  EXPECT_EQ(state_.next_sample, 96u);
  const RunRecord expected = run_oracle(small_model("untied"), config_, last_step, skipped);
  EXPECT_TRUE(training_->weights() == expected.weights);
  std::ifstream metrics(folder_.path() / "metrics.jsonl");
  std::int64_t step = 0;
  for (std::string text; std::getline(metrics, text);) {
    const auto line = nlohmann::json::parse(text);
    EXPECT_EQ(line["step"], ++step);
    EXPECT_EQ(line.contains("skipped"), skipped.contains(step));
    EXPECT_EQ(line["loss"], expected.losses[static_cast<std::size_t>(step - 1)]);
  }
  EXPECT_EQ(step, 8);
}

TEST_F(SkippingTrainer, EndsAfterAHundredInARowAlsoWhenStartedAgain) {
  config_.train.steps = 1000;
  config_.train.global_batch = world().size();
  config_.checkpoint.every = 60;
  const auto spoiled = [](std::int64_t step) { return step > 1; };
  for (const std::int64_t from : {0, 60}) {
    try {
      static_cast<void>(run(spoiled));
      FAIL() << "the run went on";
    } catch (const mpi::AgreedError& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_NE(std::string(error.what()).find("100 steps in a row"), std::string::npos) << error.what();
    }
    EXPECT_EQ(resumed_.step, from);
    EXPECT_EQ(state_.step, 101);
    EXPECT_EQ(state_.updates, 1);
  }
}

}  // namespace
}  // namespace lamina::test
