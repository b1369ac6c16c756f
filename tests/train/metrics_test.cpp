#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/train/metrics.hpp>
#include <lamina/train/progress.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace lamina {
namespace {

class MetricsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("lamina_metrics_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(MetricsTest, ALineHoldsTheExactLoss) {
  StepResult result;
  result.step = 3;
  result.loss = 0.1;
  const std::string line = metrics_line(result, {0.5, 100}, std::nullopt);
  EXPECT_NE(line.find("\"step\":3"), std::string::npos);
  EXPECT_NE(line.find("0x1.999999999999ap-4"), std::string::npos);
  EXPECT_EQ(line.find("val_loss"), std::string::npos);
  EXPECT_NE(metrics_line(result, {}, EvaluationResult{1.5, 10}).find("\"val_loss\":1.5"), std::string::npos);
}

TEST_F(MetricsTest, ASkippedStepIsMarkedAndStaysJson) {
  StepResult result;
  result.step = 3;
  EXPECT_EQ(metrics_line(result, {}, std::nullopt).find("skipped"), std::string::npos);
  result.loss = std::numeric_limits<double>::infinity();
  result.grad_norm = std::nan("");
  result.skipped = true;
  const auto line = nlohmann::json::parse(metrics_line(result, {}, std::nullopt));
  EXPECT_TRUE(line["skipped"].get<bool>());
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_TRUE(line["grad_norm"].is_null());
  EXPECT_EQ(line["loss_hex"], "inf");
  EXPECT_EQ(line["grad_norm_hex"], "nan");
}

TEST_F(MetricsTest, AStepWithoutLabelsHasNoLoss) {
  StepResult result;
  result.step = 3;
  result.loss = std::nan("");
  result.skipped = result.no_labels = true;
  const auto line = nlohmann::json::parse(metrics_line(result, {0.5, 1000}, std::nullopt));
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_TRUE(line["loss_hex"].is_null());
  EXPECT_TRUE(line["skipped"].get<bool>());
  EXPECT_TRUE(line["no_labels"].get<bool>());
  EXPECT_EQ(line["tokens"], 0);
  EXPECT_EQ(line["labelled_tok_s"], 0.0);
  EXPECT_NE(progress_text(result, {0.5, 1234}, 100, "", std::nullopt).find("loss none"), std::string::npos);
}

TEST_F(MetricsTest, LabelledTokensASecondStandApart) {
  StepResult result;
  result.tokens = 300;
  const auto line = nlohmann::json::parse(metrics_line(result, {0.5, 1000}, std::nullopt));
  EXPECT_EQ(line["tok_s"], 1000.0);
  EXPECT_EQ(line["labelled_tok_s"], 600.0);
  EXPECT_FALSE(line.contains("no_labels"));
}

TEST_F(MetricsTest, ResumingDropsLaterAndBrokenLines) {
  {
    std::ofstream out(folder_ / "metrics.jsonl");
    out << "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"step\":4,\"los";
  }
  MetricsFile file(folder_, 2);
  file.append("{\"step\":3,\"again\":true}");
  EXPECT_EQ(read_file(folder_ / "metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n{\"step\":3,\"again\":true}\n");
}

TEST_F(MetricsTest, AFolderThatIsNotThereIsRefused) { EXPECT_THROW(MetricsFile(folder_ / "no" / "such", 0), Error); }

TEST(Progress, OneLineSaysWhatMatters) {
  StepResult result;
  result.step = 50;
  result.loss = 2.5;
  result.grad_norm = 0.7;
  result.lr = 3e-4;
  result.tokens = 617;
  EXPECT_EQ(progress_text(result, {0.5, 1234}, 100, "25.0 s left", std::nullopt),
            "step 50/100  loss 2.5000  grad 0.7  lr 3.00e-04  1234 tok/s  25.0 s left");
  result.tokens = 500;
  EXPECT_EQ(progress_text(result, {0.5, 1234}, 100, "", EvaluationResult{2, 1}),
            "step 50/100  loss 2.5000  grad 0.7  lr 3.00e-04  1234 tok/s (1000 labelled)  validation 2.0000");
}

TEST(Progress, ItsPaceIsSteadyAndCountsWhatLiesBetweenSteps) {
  StepPace pace(100);
  pace.step(110);
  EXPECT_DOUBLE_EQ(pace.mean(), 10) << "nothing better is known";
  pace.step(111);
  EXPECT_DOUBLE_EQ(pace.mean(), 1) << "the first step started everything up";
  pace.step(114);
  EXPECT_DOUBLE_EQ(pace.mean(), 2);
  double now = 114;
  for (int i = 0; i < 1000; ++i) pace.step(now += 1);
  EXPECT_NEAR(pace.mean(), 1, 0.01);
  pace.step(now + 11);  // a validation
  EXPECT_NEAR(pace.mean(), 1.05, 0.01) << "one slow step does not frighten";
}

class ProgressLines : public testing::Test {
 protected:
  // What standard error gets of steps 1 to `last`.
  static std::string lines(const TrainSection& train, int columns, std::int64_t last) {
    testing::internal::CaptureStderr();
    Progress progress(train, 1, [&] { return columns; });
    StepResult result;
    result.loss = 2.5;
    result.tokens = 100;
    for (result.step = 1; result.step <= last; ++result.step) progress.step(result, {0.1, 1000}, std::nullopt);
    return testing::internal::GetCapturedStderr();
  }
  static TrainSection ten_steps() {
    TrainSection train;
    train.steps = 10;
    train.log_every = 4;
    return train;
  }
};

TEST_F(ProgressLines, TheLiveLineIsCutToTheTerminal) {
  for (const int columns : {80, 60, 20}) {
    const std::string text = lines(ten_steps(), columns, 3);
    const std::size_t live = text.find("\r\033[Kstep 2/10");
    ASSERT_NE(live, std::string::npos) << text;
    const std::size_t end = text.find('\r', live + 1);
    EXPECT_LT(end - live - 4, static_cast<std::size_t>(columns)) << text;
  }
}

TEST_F(ProgressLines, EveryFewStepsALineStaysOnTerminalsToo) {
  for (const int columns : {0, 200}) {
    const std::string text = lines(ten_steps(), columns, 10);
    for (const char* stays : {"step 1/10", "step 4/10", "step 8/10", "step 10/10"}) {
      const std::size_t at = text.find(stays);
      ASSERT_NE(at, std::string::npos) << text;
      EXPECT_EQ(text[text.find_first_of("\r\n", at)], '\n') << stays;
    }
    EXPECT_EQ(text.find("step 5/10") != std::string::npos, columns > 0) << "live lines are for terminals";
  }
}

TEST_F(ProgressLines, TheTimeLeftAimsAtStopAt) {
  TrainSection train = ten_steps();
  train.stop_at = 6;
  const std::string text = lines(train, 0, 6);
  EXPECT_NE(text.find("s to step 6\n"), std::string::npos) << text;
  EXPECT_NE(text.find("step 6/10"), std::string::npos) << "the last line before the stop stays";
}

}  // namespace
}  // namespace lamina
