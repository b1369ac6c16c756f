// Slow is not dead: one rank's disk is slower than the deadline, and the run goes on; a rank that is dead ends it.
#include "app/program_fixture.hpp"

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

class SlowDisk : public ProgramTest {
 protected:
  // `what`: CALL:RANK:SECONDS of tests/support/slow_io.c.
  [[nodiscard]] ProgramResult train_slowly(const std::string& what, const std::string& arguments) const {
    return run_command("LAMINA_TEST_SLOW=" + what + " LD_PRELOAD=" + LAMINA_SLOW_IO + " " +
                       train_command(2, "run", "--train.eval_every 0 --run.deadline_s 1 " + arguments));
  }
};

TEST_F(SlowDisk, OneSlowCallWhileSavingOrLoadingEndsNothing) {
  for (const char* call : {"write:1:4", "sync:0:4"}) {
    std::filesystem::remove_all(folder_ / "run");
    const ProgramResult result = train_slowly(call, "--train.steps 4");
    EXPECT_EQ(result.status, 0) << call << "\n" << result.output;
  }
  const ProgramResult resumed = train_slowly("read:1:4", "--train.steps 6");
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_NE(resumed.output.find("resumed from"), std::string::npos) << resumed.output;
}

TEST_F(SlowDisk, ACallThatTakesLongerThanItsDeadlineDoes) {
  const ProgramResult result = train_slowly("write:1:60", "--train.steps 4 --run.local_deadline_s 2");
  EXPECT_EQ(result.status, 69) << result.output;
  EXPECT_NE(result.output.find("rank 1 is busy with files for longer than run.local_deadline_s"), std::string::npos)
      << result.output;
}

TEST_F(SlowDisk, AStoppedRankEndsTheRunSoon) {
  const std::string script = train_command(2, "run", "--train.steps 1000000 --train.eval_every 0 --run.deadline_s 1") +
                             " & job=$!\nuntil [ -s " + path("run/metrics.jsonl") +
                             " ]; do sleep 0.05; kill -0 $job || exit 99; done\n"
                             "kill -STOP $(pgrep -P $job | sed -n 2p)\nbegin=$(date +%s)\nwait $job; code=$?\n"
                             "echo took $(($(date +%s) - begin)) s; exit $code";
  const ProgramResult result = run_command("exec bash -c '" + script + "'");
  EXPECT_EQ(result.status, 69) << result.output;
  EXPECT_NE(result.output.find("no sign of life"), std::string::npos) << result.output;
  const std::size_t took = result.output.find("took ");
  ASSERT_NE(took, std::string::npos) << result.output;
  EXPECT_LT(std::stoi(result.output.substr(took + 5)), 20) << result.output;
}

}  // namespace
}  // namespace lamina::test
