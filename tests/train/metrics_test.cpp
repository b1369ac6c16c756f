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
  const std::string text = progress_text(result, {0.5, 1234}, 100, 0.5, std::nullopt);
  EXPECT_EQ(text, "step 50/100  loss 2.5000  grad 0.7  lr 3.00e-04  1234 tok/s  25.0 s left");
}

}  // namespace
}  // namespace lamina
