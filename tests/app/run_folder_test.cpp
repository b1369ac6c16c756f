// One run folder through faults and habits: two runs at once, failed and superfluous starts, damaged checkpoints.
#include "app/program_fixture.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class RunFolderTest : public ProgramTest {
 protected:
  // Everything in a folder, with the content of its files.
  [[nodiscard]] std::map<std::string, std::string> everything_in(const std::string& folder) const {
    std::map<std::string, std::string> content;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / folder)) {
      const std::string name = fs::relative(entry.path(), folder_.path()).string();
      content[name] = entry.is_regular_file() ? read(name) : "";
    }
    return content;
  }
  void damage(const std::string& checkpoint, const std::string& file = "rank_00001.h5") const {
    run_command("printf '\\377' | dd of=" + path(checkpoint) + "/" + file + " bs=1 seek=9000 conv=notrunc");
  }
  // A run that has saved steps 4, 8 and 10 and goes on to 12.
  void save_three() const {
    ASSERT_EQ(train(2, "run", "--checkpoint.every 4 --checkpoint.keep 0 --train.stop_at 10").status, 0);
  }
  [[nodiscard]] std::vector<std::string> aside() const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ / "run/aside", none)) {
      const std::string name = entry.path().filename();
      names.push_back(name.substr(0, name.find('.')));
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(RunFolderTest, ASecondRunIsRefusedAndADeadOneTakenOver) {
  const std::string long_run = "--train.steps 100000 --optim.warmup 2 --train.eval_every 0 --train.log_every 100000";
  const std::string script = train_command(2, "run", long_run) + " > " + path("first.txt") +
                             " 2>&1 & job=$!\nuntil [ -s " + path("run/metrics.jsonl") +
                             " ]; do sleep 0.05; kill -0 $job || exit 99; done\n" + train_command(1, "run", long_run) +
                             "; code=$?\n" + program("lamina-inspect") + " " + path("run") +
                             "; kill -0 $job || exit 98\n" + "kill -9 $(pgrep -P $job); wait $job; exit $code";
  const ProgramResult second = run_command(script);
  EXPECT_EQ(second.status, 64) << second.output;
  const auto lines = error_lines(second.output);
  ASSERT_GE(lines.size(), 1u) << second.output;
  EXPECT_THAT(lines[0], AllOf(HasSubstr("another run writes to"), HasSubstr("process "), HasSubstr(" since 2")));
  EXPECT_TRUE(fs::exists(folder_ / "run/run.lock"));
  const ProgramResult third = train(2, "run");
  EXPECT_EQ(third.status, 0) << third.output;
  EXPECT_THAT(third.output, AllOf(HasSubstr("took over the lock"), HasSubstr("has ended")));
  EXPECT_FALSE(fs::exists(folder_ / "run/run.lock"));
}

TEST_F(RunFolderTest, AFailedStartLeavesNoTrace) {
  EXPECT_EQ(train(2, "a/b", "--run.resume " + path("nowhere")).status, 66);
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  save_three();
  const auto before = everything_in("run");
  for (const std::string change : {"--run.seed 4", "--optim.kind lion", "--data.train /nowhere", "--run.resume never",
                                   "--model.init pretrained --run.resume /nowhere"}) {
    EXPECT_NE(train(2, "run", change).status, 0) << change;
    EXPECT_EQ(everything_in("run"), before) << change;
  }
}

TEST_F(RunFolderTest, ACompleteRunSaysSoAndChangesNothing) {
  ASSERT_EQ(train(1, "run").status, 0);
  const auto before = everything_in("run");
  const ProgramResult again = train(2, "run", "--train.log_every 1");
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("already complete: 12 of 12 steps are done; raise train.steps or choose"));
  EXPECT_EQ(everything_in("run"), before);
}

TEST_F(RunFolderTest, ADamagedCheckpointIsPassedOver) {
  ASSERT_EQ(train(1, "straight").status, 0);
  save_three();
  damage("run/step_00000010");
  const std::string out = path("out");
  const ProgramResult merged = run_command(program("lamina-consolidate") + " " + path("run") + " " + out);
  EXPECT_EQ(merged.status, 0) << merged.output;
  EXPECT_THAT(merged.output, AllOf(HasSubstr("skipped " + path("run/step_00000010")), HasSubstr("step 8 ->")));
  const ProgramResult seen = run_command(program("lamina-inspect") + " " + path("run"));
  EXPECT_THAT(seen.output, AllOf(HasSubstr("damaged: "), HasSubstr("newest: " + path("run/step_00000008"))));
  const ProgramResult digest = run_command(program("lamina-inspect") + " --digest " + path("run"));
  EXPECT_THAT(digest.output, HasSubstr("taken: " + path("run/step_00000008")));
  const ProgramResult resumed = train(3, "run");
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_THAT(resumed.output, AllOf(HasSubstr("skipped " + path("run/step_00000010")), HasSubstr("rank_00001.h5"),
                                    HasSubstr("resumed from " + path("run/step_00000008"))));
  EXPECT_THAT(aside(), testing::ElementsAre("step_00000010"));
  EXPECT_EQ(bits_of("run"), bits_of("straight"));
  EXPECT_EQ(digest_of("run"), digest_of("straight"));
}

TEST_F(RunFolderTest, WithoutAUsableCheckpointItDoesNotBeginAnewByItself) {
  save_three();
  damage("run/step_00000004");
  damage("run/step_00000008", "rank_00000.h5");
  fs::resize_file(folder_ / "run/step_00000010/rank_00001.h5", 5000);
  const auto before = everything_in("run");
  for (const int ranks : {1, 3}) {
    const ProgramResult result = train(ranks, "run");
    EXPECT_EQ(result.status, 66) << result.output;
    const auto lines = error_lines(result.output);
    ASSERT_EQ(lines.size(), 1u) << result.output;
    EXPECT_THAT(lines[0], AllOf(HasSubstr("no usable checkpoint"), HasSubstr("step_00000004"),
                                HasSubstr("step_00000008"), HasSubstr("run.overwrite")));
    EXPECT_EQ(everything_in("run"), before);
  }
  for (const char* step : {"4", "8"}) {  // nothing but folders that are incomplete
    fs::remove(folder_ / "run" / ("step_0000000" + std::string(step)) / "manifest.json");
  }
  EXPECT_EQ(train(2, "run").status, 66);
  EXPECT_EQ(train(2, "run", "--run.overwrite yes").status, 64);
  const ProgramResult anew = train(2, "run", "--run.resume never --run.overwrite yes");
  EXPECT_EQ(anew.status, 0) << anew.output;
  EXPECT_THAT(aside(), testing::ElementsAre("latest", "metrics", "step_00000004", "step_00000008", "step_00000010"));
  EXPECT_EQ(bits_of("run").size(), 12u);
}

}  // namespace
}  // namespace lamina::test
