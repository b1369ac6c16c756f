// Faults while a run goes on: a rank killed, a full disk, too little shared memory. Nothing hangs, nothing is lost.
#include "app/program_fixture.hpp"

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

class Faults : public ProgramTest {
 protected:
  // Each rank behind a shell command that sets its limits.
  [[nodiscard]] ProgramResult train_under(const std::string& limit, int ranks,
                                          const std::string& arguments = "") const {
    return run_command(std::string(LAMINA_MPIEXEC) + " " + std::to_string(ranks) + " sh -c '" + limit + "; exec " +
                       program("lamina") + " train " + path("run.ini") + " --run.dir " + path("run") + " " + arguments +
                       "'");
  }
};

TEST_F(Faults, ARankKilledAndTheRunResumedWithAnotherNumberOfRanks) {
  const std::string arguments = "--train.steps 480 --checkpoint.every 20 --checkpoint.keep 0 --train.eval_every 60";
  ASSERT_EQ(train(1, "straight", arguments).status, 0);
  // Wait for the second checkpoint and a few steps more, then kill one rank of four without warning.
  const std::string script = train_command(4, "run", arguments) + " & job=$!\nuntil [ -e " +
                             path("run/step_00000040/manifest.json") +
                             " ]; do sleep 0.02; kill -0 $job || exit 99; done\nsleep 0.05\n"
                             "kill -9 $(pgrep -P $job | sed -n 2p)\nwait $job; exit $?";
  const ProgramResult killed = run_command(script);
  ASSERT_NE(killed.status, 0) << killed.output;
  ASSERT_NE(killed.status, 99) << "the run ended before it could be killed\n" << killed.output;
  EXPECT_LT(bits_of("run").size(), 480u) << "the run was over before the kill";
  const ProgramResult resumed = train(3, "run", arguments);
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_NE(resumed.output.find("resumed from"), std::string::npos);
  EXPECT_EQ(bits_of("run"), bits_of("straight"));
  EXPECT_EQ(digest_of("run"), digest_of("straight"));
}

TEST_F(Faults, AFullDiskWhileSavingLeavesTheLastCheckpoint) {
  if (!can_mount()) GTEST_SKIP() << "needs the right to mount a small file system";
  ASSERT_EQ(train(2, "first", "--train.stop_at 4").status, 0);
  // The folder gets room for what is there and a little more, not for another checkpoint.
  std::filesystem::create_directories(folder_ / "small");
  const std::string room = "$(($(du -sk " + path("first") + " | cut -f1) + 150))k";
  const std::string script = "unshare --mount sh -c 'mount -t tmpfs -o size=" + room + " tmpfs " + path("small") +
                             " && cp -r " + path("first") + " " + path("small/run") + " && " +
                             train_command(2, "small/run", "--checkpoint.keep 0") + "; code=$?; " +
                             program("lamina-inspect") + " " + path("small/run") + "; df -k " + path("small") +
                             "; exit $code'";
  const ProgramResult result = run_command(script);
  EXPECT_EQ(result.status, 66) << result.output;
  const auto lines = error_lines(result.output);
  ASSERT_EQ(lines.size(), 1u) << result.output;
  EXPECT_NE(lines[0].find("No space left"), std::string::npos) << lines[0];
  EXPECT_NE(result.output.find("step_00000004"), std::string::npos) << "the last checkpoint stays\n" << result.output;
}

TEST_F(Faults, AFileSizeLimitInTheMiddleOfAShardIsAnUnwritableCheckpoint) {
  const ProgramResult result = train_under("ulimit -f 64", 1);
  EXPECT_EQ(result.status, 66) << result.output;
  const auto lines = error_lines(result.output);
  ASSERT_EQ(lines.size(), 1u) << result.output;
  EXPECT_NE(lines[0].find("File too large"), std::string::npos) << lines[0];
}

TEST_F(Faults, AFileSizeLimitBelowTheSlotsIsRefusedBeforeTheFirstStep) {
  const ProgramResult result = train_under("ulimit -f 64", 2);
  EXPECT_EQ(result.status, 64) << result.output;
  const auto lines = error_lines(result.output);
  ASSERT_EQ(lines.size(), 1u) << result.output;
  EXPECT_NE(lines[0].find("ulimit -f"), std::string::npos) << lines[0];
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need terabytes of address space
TEST_F(Faults, TooLittleAddressSpaceIsRefusedBeforeTheFirstStep) {
  for (const char* limit : {"-v 64", "-v 96", "-v 160", "-v 224", "-v 288", "-v 352", "-v 416", "-d 64", "-d 256"}) {
    const std::string command =
        std::string("ulimit ").append(limit, 3).append("$((").append(limit + 3).append(" * 1024))");
    const ProgramResult result = train_under(command, 2);
    EXPECT_EQ(result.status, 64) << limit << "\n" << result.output;
    const auto lines = error_lines(result.output);
    ASSERT_EQ(lines.size(), 1u) << limit << "\n" << result.output;
    EXPECT_NE(lines[0].find(std::string("ulimit ") + std::string(limit).substr(0, 2) + " leaves"), std::string::npos)
        << lines[0];
    EXPECT_EQ(result.output.find("step 1/"), std::string::npos) << result.output;
  }
  const ProgramResult enough = train_under("ulimit -v $((1024 * 1024))", 2);
  EXPECT_EQ(enough.status, 0) << enough.output;
}

TEST_F(Faults, ProgramsThatComputeNothingNeedLittleAddressSpace) {
  const std::string limit = "ulimit -v 65536; ";
  EXPECT_EQ(run_command(limit + program("lamina") + " --version").status, 0);
  EXPECT_EQ(run_command(limit + program("lamina-tokenize") + " --tokenizer byte --threads 1 --out " + path("t.h5") +
                        " " + path("text.txt"))
                .status,
            0);
  // More threads than there is room for: those that were made must not be waited for.
  const ProgramResult crowd =
      run_command(limit + "timeout 60 " + program("lamina-tokenize") + " --tokenizer byte --threads 64 --out " +
                  path("crowd.h5") + " " + path("text.txt"));
  EXPECT_EQ(crowd.status, 64) << crowd.output;
  const ProgramResult generate =
      run_command(limit + program("lamina") + " generate --prompt x --model " + path("model"));
  EXPECT_EQ(generate.status, 64) << generate.output;
  EXPECT_NE(generate.output.find("OpenBLAS"), std::string::npos) << generate.output;
}
#endif

TEST_F(Faults, TooLittleSharedMemoryIsRefusedBeforeTheFirstStep) {
  if (!can_mount()) GTEST_SKIP() << "needs the right to mount a small file system";
  write_model("model", {{"vocab_size", 20000}, {"hidden_size", 96}});
  const std::string script =
      "unshare --mount sh -c 'mount -t tmpfs -o size=12m tmpfs /dev/shm && " + train_command(2, "run") + "'";
  const ProgramResult result = run_command(script);
  EXPECT_EQ(result.status, 64) << result.output;
  const auto lines = error_lines(result.output);
  ASSERT_EQ(lines.size(), 1u) << result.output;
  EXPECT_NE(lines[0].find("/dev/shm"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("the slots need"), std::string::npos) << lines[0];
  EXPECT_EQ(result.output.find("step 1/"), std::string::npos);
  EXPECT_EQ(result.output.find("Bus error"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace lamina::test
