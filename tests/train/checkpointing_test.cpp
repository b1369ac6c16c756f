// Save, load and continue: the same bits as a straight run, at this world size and, through a file, from another.
#include "train/oracle.hpp"
#include "train/training_world.hpp"

#include <chrono>
#include <filesystem>
#include <functional>

#include <lamina/train/checkpointer.hpp>
#include <lamina/train/start_choice.hpp>
#include <lamina/train/trainer.hpp>

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

const mpi::Communicator& world() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(120));
  return comm;
}

std::filesystem::path fresh_folder(const std::string& name) {
  const std::string id = world().broadcast(std::to_string(::getpid()), 0, "the folder");
  const auto folder = std::filesystem::path(testing::TempDir()) / ("lamina_" + name + "_" + id);
  if (world().rank() == 0) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  world().barrier("the folder");
  return folder;
}

RunConfig config_in(const std::filesystem::path& folder, Strategy strategy) {
  RunConfig config = small_run();
  config.run.dir = folder.string();
  config.parallel.strategy = strategy;
  return config;
}

// Steps first+1 .. last on `training`, appended to `record`.
void go_on(TrainingWorld& training, std::int64_t first, std::int64_t last, RunRecord& record) {
  for (std::int64_t step = first + 1; step <= last; ++step) {
    const auto sample = static_cast<std::uint64_t>((step - 1) * training.config().train.global_batch);
    const StepResult result = training.engine().run(training.batches(), step, sample, false);
    record.losses.push_back(result.loss);
    record.norms.push_back(result.grad_norm);
  }
}

TEST(Checkpointing, ContinuingIsAsIfNothingHadHappened) {
  const RunRecord expected = run_oracle(small_model("tied"), small_run(), 20);
  for (const auto& [save_strategy, load_strategy] : {std::pair{Strategy::full, Strategy::full},
                                                     {Strategy::full, Strategy::no_shard},
                                                     {Strategy::no_shard, Strategy::full}}) {
    const auto folder = fresh_folder("continue");
    RunRecord record;
    std::filesystem::path saved;
    {
      TrainingWorld training(world(), small_model("tied"), config_in(folder, save_strategy));
      go_on(training, 0, 8, record);
      Checkpointer checkpointer(world(), training.store(), training.config(), {"{}", "", "", ""}, {});
      saved = checkpointer.save({8, 96, 123});
      saved = world().broadcast(saved.string(), 0, "the checkpoint");
    }
    TrainingWorld training(world(), small_model("tied"), config_in(folder, load_strategy));
    Checkpointer checkpointer(world(), training.store(), training.config(), {"{}", "", "", ""}, {});
    const RunState state = checkpointer.load(saved);
    EXPECT_EQ(state.step, 8);
    EXPECT_EQ(state.next_sample, 96u);
    EXPECT_EQ(state.tokens_seen, 123u);
    go_on(training, 8, 20, record);
    EXPECT_EQ(record.losses, expected.losses);
    EXPECT_EQ(record.norms, expected.norms);
    EXPECT_TRUE(training.weights() == expected.weights);
    if (world().rank() == 0) std::filesystem::remove_all(folder);
  }
}

// Half of the ranks load what all saved: MPI groups of different sizes inside one job.
TEST(Checkpointing, AnotherWorldSizeContinuesWithTheSameBits) {
  if (world().size() < 3) GTEST_SKIP() << "needs three ranks to form another world size that divides the batch";
  const RunRecord expected = run_oracle(small_model("untied"), small_run(), 20);
  const auto folder = fresh_folder("resize");
  std::string saved;
  RunRecord before;
  {
    TrainingWorld training(world(), small_model("untied"), config_in(folder, Strategy::full));
    go_on(training, 0, 5, before);
    saved = world().broadcast(
        Checkpointer(world(), training.store(), training.config(), {"{}", "", "", ""}, {}).save({5, 60, 0}).string(), 0,
        "it");
  }
  const int smaller = world().size() == 6 ? 4 : world().size() - 1;  // 3 -> 2, 4 -> 3, 6 -> 4: all divide 12
  const mpi::Communicator part = world().split(world().rank() < smaller ? 0 : 1, world().rank());
  if (world().rank() < smaller) {
    RunRecord record = before;
    TrainingWorld training(part, small_model("untied"), config_in(folder, Strategy::full));
    static_cast<void>(Checkpointer(part, training.store(), training.config(), {"{}", "", "", ""}, {}).load(saved));
    go_on(training, 5, 20, record);
    EXPECT_EQ(record.losses, expected.losses);
    EXPECT_TRUE(training.weights() == expected.weights);
  }
  world().barrier("the end");
  if (world().rank() == 0) std::filesystem::remove_all(folder);
}

TEST(Checkpointing, AnotherModelIsRefusedOnEveryRank) {
  const auto folder = fresh_folder("other");
  TrainingWorld one(world(), small_model("tied"), config_in(folder, Strategy::full));
  const std::string saved = world().broadcast(
      Checkpointer(world(), one.store(), one.config(), {"{}", "", "", ""}, {}).save({1, 12, 0}).string(), 0, "it");
  TrainingWorld other(world(), small_model("untied"), config_in(folder, Strategy::full));
  Checkpointer checkpointer(world(), other.store(), other.config(), {"{}", "", "", ""}, {});
  EXPECT_THROW(static_cast<void>(checkpointer.load(saved)), mpi::AgreedError);
  world().barrier("the end");
  if (world().rank() == 0) std::filesystem::remove_all(folder);
}

// What a run with `change` says when it goes on from `saved`, and what it goes on with.
std::pair<std::string, RunState> go_on_from(const std::string& saved, RunConfig config,
                                            const std::function<void(RunConfig&)>& change) {
  change(config);
  TrainingWorld training(world(), small_model("tied"), config);
  Checkpointer checkpointer(world(), training.store(), training.config(), {"{}", "", "", ""}, {});
  try {
    return {"no error", checkpointer.load(saved)};
  } catch (const mpi::AgreedError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return {error.what(), {}};
  }
}

TEST(Checkpointing, AnotherRunIsRefusedUnlessAllowed) {
  const auto folder = fresh_folder("drift");
  RunConfig config = config_in(folder, Strategy::full);
  config.data.last_batch = LastBatch::pad;
  TrainingWorld training(world(), small_model("tied"), config);
  Checkpointer checkpointer(world(), training.store(), training.config(), {"{}", "", "", ""}, {});
  const std::string saved = world().broadcast(checkpointer.save({1, 12, 0}).string(), 0, "it");
  const auto going_on = [&](const std::function<void(RunConfig&)>& change) {
    return go_on_from(saved, config, change);
  };
  const auto same = going_on([](RunConfig& c) { c.optim.lr = 1e-3; });
  EXPECT_EQ(same.first, "no error");
  EXPECT_EQ(same.second.next_sample, 12u);
  EXPECT_EQ(same.second.data_restarts, 0u);
  EXPECT_NE(going_on([](RunConfig& c) { c.train.global_batch = 24; }).first.find("was 12 and is 24"),
            std::string::npos);
  EXPECT_NE(going_on([](RunConfig& c) { c.data.last_batch = LastBatch::wrap; }).first.find("was pad and is wrap"),
            std::string::npos);
  const auto allowed = going_on([](RunConfig& c) {
    c.train.global_batch = 24;
    c.run.allow_drift = "train.global_batch";
  });
  EXPECT_EQ(allowed.first, "no error");
  EXPECT_EQ(allowed.second.step, 1);
  EXPECT_EQ(allowed.second.next_sample, 0u) << "epochs end elsewhere: the data begin anew";
  EXPECT_EQ(allowed.second.data_restarts, 1u);
  world().barrier("the end");
  if (world().rank() == 0) std::filesystem::remove_all(folder);
}

TEST(Checkpointing, TheTrainerSavesStopsAndKeeps) {
  const auto folder = fresh_folder("trainer");
  RunConfig config = config_in(folder, Strategy::full);
  config.checkpoint.every = 2;
  config.checkpoint.keep = 2;
  config.train.stop_at = 7;
  TrainingWorld training(world(), small_model("tied"), config);
  Checkpointer checkpointer(world(), training.store(), training.config(), {"{}", "", "", ""}, {});
  RunState state;
  EXPECT_EQ(train(training.context(), {training.batches(), {}, 0}, checkpointer, state, [] { return false; }, {}),
            TrainEnd::stopped_at);
  EXPECT_EQ(state.step, 7);
  world().barrier("the files");
  EXPECT_TRUE(std::filesystem::exists(folder / "step_00000007" / "manifest.json"));
  EXPECT_TRUE(std::filesystem::exists(folder / "step_00000006"));
  EXPECT_FALSE(std::filesystem::exists(folder / "step_00000004"));
  EXPECT_EQ(choose_start(config.run).candidates.front().filename(), "step_00000007");
  config.run.resume = "never";
  EXPECT_THROW(static_cast<void>(choose_start(config.run)), UsageError);
  // One rank's wish stops all.
  training.config().train.stop_at = 0;
  const bool wish = world().rank() == world().size() - 1;
  EXPECT_EQ(train(training.context(), {training.batches(), {}, 0}, checkpointer, state, [&] { return wish; }, {}),
            TrainEnd::asked_to_stop);
  EXPECT_EQ(state.step, 8);
  world().barrier("the end");
  if (world().rank() == 0) std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lamina::test
