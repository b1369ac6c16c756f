// timeline.json: valid, complete, consistent with the schedule, on one clock.
#include "train/training_world.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include <lamina/base/file.hpp>
#include <lamina/train/timeline.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lamina::test {
namespace {

const mpi::Communicator& world() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(60));
  return comm;
}

// Steps 2 and 3 of 4.
nlohmann::json recorded(RunConfig config) {
  TrainingWorld training(world(), small_model("untied"), config);
  Timeline timeline(world(), training.plan(), training.engine().shape(), {2, 3});
  for (std::int64_t step = 1; step <= 4; ++step) {
    timeline.add(training.engine().run(training.batches(), step, 0, false), training.engine().trace());
    EXPECT_EQ(timeline.complete(), step >= 3);
  }
  const std::string folder = world().broadcast(std::filesystem::path(testing::TempDir()).string(), 0, "a folder");
  const std::filesystem::path path = timeline.write(folder);
  EXPECT_TRUE(timeline.empty());
  world().barrier("the file");
  nlohmann::json json = nlohmann::json::parse(read_file(path));
  world().barrier("the reading");
  return json["traceEvents"];
}

TEST(Timeline, ShowsEveryOperationOfItsStepsOnEveryRank) {
  RunConfig config = small_run();
  config.parallel.bucket_mb = 2.0 / 1024;
  const nlohmann::json events = recorded(config);
  std::map<std::pair<int, std::string>, int> counts;
  std::set<int> ranks;
  std::map<std::string, int> arrow_ends;
  for (const auto& event : events) {
    const std::string phase = event["ph"], name = event["name"];
    ranks.insert(event["pid"].get<int>());
    if (phase == "s" || phase == "f") ++arrow_ends[event["id"].get<std::string>()];
    if (phase != "X") continue;
    EXPECT_GE(event["dur"].get<double>(), 0);
    ++counts[{event["pid"].get<int>(), name.substr(0, name.find(' '))}];
    if (event["args"].contains("unit")) {
      EXPECT_GT(event["args"]["bytes"].get<int>(), 0);
    }
  }
  EXPECT_EQ(static_cast<int>(ranks.size()), world().size());
  const int micro_steps = static_cast<int>(config.train.global_batch) / world().size();
  TrainingWorld training(world(), small_model("untied"), config);
  std::map<OperationKind, int> planned;
  for (const Operation& operation : step_schedule(training.engine().shape())) ++planned[operation.kind];
  for (const int rank : ranks) {
    EXPECT_EQ((counts[{rank, "step"}]), 2);
    EXPECT_EQ((counts[{rank, "optimizer"}]), 2);
    EXPECT_EQ((counts[{rank, "load"}]), 2 * micro_steps);
    EXPECT_EQ((counts[{rank, "gather"}]), 2 * planned[OperationKind::gather]);
    EXPECT_EQ((counts[{rank, "reduce"}]), 2 * planned[OperationKind::reduce]);
    EXPECT_EQ((counts[{rank, "backward"}] + counts[{rank, "loss"}]), 2 * planned[OperationKind::backward]);
  }
  EXPECT_FALSE(arrow_ends.empty());
  for (const auto& [id, ends] : arrow_ends) EXPECT_EQ(ends, 2) << id;
}

TEST(Timeline, OperationsLieInsideTheirStepAndTracksDoNotOverlap) {
  const nlohmann::json events = recorded(small_run());
  std::vector<std::pair<double, double>> steps;
  for (const auto& event : events) {
    if (event["ph"] == "X" && event["name"].get<std::string>().starts_with("step")) {
      steps.emplace_back(event["ts"].get<double>(), event["ts"].get<double>() + event["dur"].get<double>());
      if (world().size() > 1) {
        EXPECT_GE(event["args"]["overlap"].get<double>(), 0);
        EXPECT_LE(event["args"]["overlap"].get<double>(), 1);
      }
    }
  }
  // All ranks take their steps at the same time on the shared clock.
  for (std::size_t i = 2; i < steps.size(); ++i) {
    EXPECT_LT(steps[i].first, steps[i % 2].second);
    EXPECT_LT(steps[i % 2].first, steps[i].second);
  }
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  for (const auto& event : events) {
    if (event["ph"] != "X" || event["name"].get<std::string>().starts_with("step")) continue;
    const double begin = event["ts"].get<double>(), end = begin + event["dur"].get<double>();
    tracks[{event["pid"].get<int>(), event["tid"].get<int>()}].emplace_back(begin, end);
  }
  for (auto& [track, intervals] : tracks) {
    std::ranges::sort(intervals);
    for (std::size_t i = 1; i < intervals.size(); ++i) EXPECT_GE(intervals[i].first, intervals[i - 1].second - 0.002);
  }
}

}  // namespace
}  // namespace lamina::test
