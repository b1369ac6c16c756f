// Stopping a run on purpose loses nothing, and says what it does.
#include "app/program_fixture.hpp"

#include <utility>

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

class Stopping : public ProgramTest {
 protected:
  // `command` in the background of a shell, where Ctrl-C would be ignored if nothing asked for it; then `script`, which
  // knows it as $pid, and the command's exit code.
  static ProgramResult run_beside(const std::string& command, const std::string& script) {
    return run_command("env --default-signal=INT " + command + " & pid=$!; " + script + "; wait $pid; exit $?");
  }
  // Until RUN has a line of metrics.
  [[nodiscard]] std::string until_steps(const std::string& run) const {
    return "until [ -s " + path(run) + "/metrics.jsonl ]; do sleep 0.05; done; sleep 0.2";
  }
  [[nodiscard]] std::string alone(const std::string& run, const std::string& arguments) const {
    return program("lamina") + " train " + path("run.ini") + " --run.dir " + path(run) + " --train.eval_every 0 " +
           arguments;
  }
};

bool holds(const ProgramResult& result, const std::string& text) {
  return result.output.find(text) != std::string::npos;
}

TEST_F(Stopping, CtrlCSavesAtTheEndOfTheStep) {
  const ProgramResult result =
      run_beside(alone("run", "--train.steps 100000"), until_steps("run") + "; kill -INT $pid");
  EXPECT_EQ(result.status, 75) << result.output;
  EXPECT_TRUE(holds(result, "SIGINT: saving at the end of this step")) << result.output;
  EXPECT_TRUE(holds(result, "the last checkpoint is " + path("run") + "/step_")) << result.output;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/latest"));
}

TEST_F(Stopping, ASecondOneEndsAtOnce) {
  for (const auto& [signal, code] : {std::pair{"INT", 130}, {"TERM", 143}}) {
    const std::string command = alone(signal, "--train.global_batch 200000 --train.steps 100000");
    const std::string started =
        "until grep -q 'fresh start' " + path(signal) + "/log.txt 2>/dev/null; do sleep 0.05; done; sleep 1";
    // Two of them at once are one request: launchers signal a process and then its group.
    const std::string kill = std::string("kill -") + signal + " $pid";
    const ProgramResult result = run_beside(command, started + "; " + kill + "; " + kill + "; sleep 0.8; " + kill);
    EXPECT_EQ(result.status, code) << result.output;
    EXPECT_TRUE(holds(result, "saving at the end of this step")) << result.output;
    EXPECT_TRUE(holds(result, "asked twice: ending without saving")) << result.output;
  }
}

// mpirun passes USR2 on at once and leaves the ranks all the time they need.
TEST_F(Stopping, AnMpirunThatIsToldWithUsr2LetsTheRanksSave) {
  const std::string command = train_command(2, "run", "--train.steps 100000 --train.eval_every 0");
  const ProgramResult result = run_beside(command, until_steps("run") + "; kill -USR2 $pid");
  EXPECT_EQ(result.status, 75) << result.output;
  EXPECT_TRUE(holds(result, "SIGUSR2: saving at the end of this step")) << result.output;
}

TEST_F(Stopping, SaysWhenMpirunWouldNotWaitForAStep) {
  const auto granted = [&](const std::string& seconds) {
    return run_command("OMPI_MCA_odls_base_sigkill_timeout=" + seconds + " " +
                       train_command(2, "run" + seconds, "--train.eval_every 0 --train.stop_at 4"));
  };
  const ProgramResult hasty = granted("0");
  ASSERT_EQ(hasty.status, 0) << hasty.output;
  EXPECT_TRUE(holds(hasty, "mpirun kills its ranks 0 s after SIGTERM")) << hasty.output;
  const ProgramResult patient = granted("600");
  ASSERT_EQ(patient.status, 0) << patient.output;
  EXPECT_FALSE(holds(patient, "mpirun kills its ranks")) << patient.output;
}

TEST_F(Stopping, GivenTheTimeMpirunsCtrlCSavesToo) {
  const std::string command =
      "OMPI_MCA_odls_base_sigkill_timeout=5 " + train_command(2, "run", "--train.steps 1000000 --train.eval_every 0");
  const ProgramResult result = run_beside(command, until_steps("run") + "; kill -INT $pid");
  EXPECT_TRUE(holds(result, "SIGTERM: saving at the end of this step")) << result.output;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/latest")) << result.output;
}

class LocalScript : public Stopping {
 protected:
  [[nodiscard]] std::string script(const std::string& arguments) const {
    return "LAMINA=" + program("lamina") + " RANKS=3 " + LAMINA_SOURCE_DIR + "/jobs/local_mpirun.sh --run.dir " +
           path("run") + " --train.global_batch 3 --train.eval_every 0 " + arguments;
  }
};

TEST_F(LocalScript, CtrlCSavesHoweverLongAStepIs) {
  // A plain mpirun would kill the ranks within two seconds.
  const ProgramResult result =
      run_beside(script("--train.global_batch 45 --data.seq_len 128"), until_steps("run") + "; kill -INT $pid");
  EXPECT_EQ(result.status, 75) << result.output;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/latest")) << result.output;
}

TEST_F(LocalScript, AfterARefusalNothingElseIsSaid) {
  const ProgramResult result = run_command(script("--train.log_every 0"));
  EXPECT_EQ(result.status, 64);
  EXPECT_TRUE(result.output.starts_with("error: ")) << result.output;
  EXPECT_EQ(result.output.find('\n'), result.output.size() - 1) << result.output;
}

// The clock decides when is saved, never what the numbers are.
TEST_F(Stopping, SavesByMinutesWithoutChangingNumbers) {
  ASSERT_EQ(train(1, "plain", "--checkpoint.minutes 0").status, 0);
  const ProgramResult result = train(3, "run", "--checkpoint.minutes 1e-6 --checkpoint.keep 0");
  ASSERT_EQ(result.status, 0) << result.output;
  for (const char* step : {"step_00000001", "step_00000007", "step_00000012"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / "run" / step / "manifest.json")) << step;
  EXPECT_EQ(bits_of("run"), bits_of("plain"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "plain/step_00000007"));
}

TEST_F(Stopping, AnEndInErrorSaysWhereTheLastCheckpointIs) {
  const std::string diverging = "--train.eval_every 0 --optim.lr 1e30 --optim.grad_clip 0 --optim.warmup 0 ";
  const ProgramResult saved = train(2, "run", diverging + "--checkpoint.every 1");
  EXPECT_EQ(saved.status, 65) << saved.output;
  EXPECT_TRUE(holds(saved, "the last checkpoint is " + path("run") + "/step_")) << saved.output;
  const ProgramResult none = train(2, "none", diverging);
  EXPECT_TRUE(holds(none, "no checkpoint was saved")) << none.output;
}

}  // namespace
}  // namespace lamina::test
