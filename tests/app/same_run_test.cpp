// Resuming is going on with the same run: what decides samples and losses may not change unnoticed.
#include "app/program_fixture.hpp"

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

class SameRun : public ProgramTest {
 protected:
  SameRun() {
    write("eight.txt", read("text.txt").substr(0, 16 * 8 + 1));
    write("other.txt", read("text.txt").substr(500, 16 * 8 + 1));
  }
  // A run of 4 steps of 2 sequences that stops after 2: half an epoch of 8 windows.
  [[nodiscard]] std::string arguments() const {
    return "--data.train " + path("eight.txt") +
           " --train.eval_every 0 --train.global_batch 2 --train.steps 4 --optim.warmup 1 ";
  }
};

TEST_F(SameRun, EveryChangeOfItIsRefusedWithBothValues) {
  ASSERT_EQ(train(1, "run", arguments() + "--train.stop_at 2").status, 0);
  const auto before = bits_of("run");
  const std::string moved = path("moved.txt");
  write("moved.txt", read("eight.txt"));
  write_model("model2", {{"rope_theta", 5e5}});
  struct Case {
    std::string change, key, was, is;
  };
  const std::vector<Case> cases{{"--run.seed 4", "run.seed", "was 3", "is 4"},
                                {"--data.train " + path("other.txt"), "data.train", "eight.txt", "other.txt"},
                                {"--data.train " + moved + ":1," + moved + ":2", "data.train", "eight.txt", " x 0.3"},
                                {"--data.seq_len 8", "data.seq_len", "was 16", "is 8"},
                                {"--data.document_mask yes", "data.document_mask", "was no", "is yes"},
                                {"--train.global_batch 4", "train.global_batch", "was 2", "is 4"},
                                {"--data.last_batch pad", "data.last_batch", "was wrap", "is pad"},
                                {"--train.label_smoothing 0.1", "train.label_smoothing", "was 0", "is 0.1"},
                                {"--model.path " + path("model2"), "model.path", "rope_theta absent", "500000"}};
  for (const Case& c : cases) {
    const ProgramResult refused = train(2, "run", arguments() + c.change);
    EXPECT_EQ(refused.status, 64) << refused.output;
    ASSERT_EQ(error_lines(refused.output).size(), 1u) << refused.output;
    const std::string line = error_lines(refused.output)[0];
    for (const std::string& part : {c.key, c.was, c.is, "--run.allow_drift " + c.key})
      EXPECT_NE(line.find(part), std::string::npos) << part << "\n" << line;
  }
  EXPECT_EQ(bits_of("run"), before);
  // The same data under another name are the same run.
  ASSERT_EQ(train(1, "straight", arguments()).status, 0);
  ASSERT_EQ(train(2, "run", arguments() + "--data.train " + moved).status, 0);
  EXPECT_EQ(bits_of("run"), bits_of("straight"));
}

TEST_F(SameRun, AnAllowedChangeBeginsTheEpochAnewAndSaysSo) {
  ASSERT_EQ(train(1, "run", arguments() + "--train.stop_at 2").status, 0);
  const std::string changed = arguments() + "--run.seed 4 --run.allow_drift run.seed ";
  const ProgramResult anew = train(2, "run", changed + "--train.steps 6 --train.stop_at 3");
  ASSERT_EQ(anew.status, 0) << anew.output;
  EXPECT_NE(anew.output.find("run.seed 4 (was 3): step 3 begins the data anew"), std::string::npos) << anew.output;
  // And once only: the next start goes on with the new order.
  const ProgramResult next = train(1, "run", changed + "--train.steps 6");
  ASSERT_EQ(next.status, 0) << next.output;
  EXPECT_EQ(next.output.find("begins the data anew"), std::string::npos) << next.output;
  EXPECT_EQ(bits_of("run").size(), 6u);
  const std::string manifest = read("run/step_00000006/manifest.json");
  EXPECT_NE(manifest.find("\"data_restarts\": 1"), std::string::npos);
  EXPECT_NE(manifest.find("\"next_sample\": 8"), std::string::npos) << "four steps of two since";
}

TEST_F(SameRun, WhatMayChangeIsTold) {
  ASSERT_EQ(train(1, "run", arguments() + "--train.stop_at 2").status, 0);
  const ProgramResult result = train(1, "run", arguments() + "--optim.lr 0.02");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("optim.lr 0.02 (was 0.01)"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace lamina::test
