// `lamina train` as a user starts it: the same bits for every number of ranks, and the files of a run.
#include "app/program_fixture.hpp"

#include <cstdlib>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace lamina::test {
namespace {

using TrainProgram = ProgramTest;

TEST_F(TrainProgram, GivesTheSameBitsHoweverItIsStarted) {
  ASSERT_EQ(train(1, "alone", "--parallel.strategy no_shard").status, 0);
  const auto expected = bits_of("alone");
  ASSERT_EQ(expected.size(), 12u);
  const std::string digest = digest_of("alone");
  const std::vector<std::pair<int, std::string>> others{
      {1, "--parallel.strategy full"},     {2, "--parallel.prefetch 0"},
      {3, "--parallel.prefetch 2"},        {4, "--run.pretend_nodes 2 --reduction.order rank"},
      {6, "--parallel.strategy no_shard"},
  };
  int number = 0;
  for (const auto& [ranks, arguments] : others) {
    const std::string run = "run" + std::to_string(number++);
    const ProgramResult result = train(ranks, run, arguments);
    ASSERT_EQ(result.status, 0) << result.output;
    EXPECT_EQ(bits_of(run), expected) << ranks << " ranks " << arguments;
    EXPECT_EQ(digest_of(run), digest);
  }
}

TEST_F(TrainProgram, WritesItsRunFolderAndSaysWhatItDoes) {
  const ProgramResult result = train(2, "run", "--checkpoint.every 4 --checkpoint.keep 0");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("2 rank(s) on 1 node(s)"), std::string::npos);
  EXPECT_NE(result.output.find("step 12/12"), std::string::npos);
  EXPECT_EQ(result.output.find('\r'), std::string::npos) << "a batch log has plain lines";
  EXPECT_NE(read("run/config.ini").find("global_batch = 12"), std::string::npos);
  EXPECT_NE(read("run/log.txt").find("step 12/12"), std::string::npos);
  for (const char* step : {"step_00000004", "step_00000008", "step_00000012"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / "run" / step / "manifest.json")) << step;
  }
  // The resolved config is a config: the same run again from it alone.
  const std::string again = std::string(LAMINA_MPIEXEC) + " 2 " + program("lamina") + " train " +
                            path("run/config.ini") + " --run.dir " + path("again");
  ASSERT_EQ(run_command(again).status, 0);
  EXPECT_EQ(bits_of("again"), bits_of("run"));
}

TEST_F(TrainProgram, AFinishedRunStartedAgainDoesNothing) {
  ASSERT_EQ(train(1, "run").status, 0);
  const auto before = bits_of("run");
  const ProgramResult result = train(2, "run");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(bits_of("run"), before);
}

TEST_F(TrainProgram, StopsWhereToldAndGoesOnWithAnotherNumberOfRanks) {
  ASSERT_EQ(train(1, "straight").status, 0);
  ASSERT_EQ(train(3, "run", "--train.stop_at 5").status, 0);
  EXPECT_EQ(bits_of("run").size(), 5u);
  const ProgramResult result = train(2, "run");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("resumed from"), std::string::npos);
  EXPECT_EQ(bits_of("run"), bits_of("straight"));
  EXPECT_EQ(digest_of("run"), digest_of("straight"));
}

// 29 windows in batches of 12: epochs of 2 batches, or of 3 with 7 rows of padding.
TEST_F(TrainProgram, EndsEpochsAsToldAtEveryNumberOfRanks) {
  write("few.txt", read("text.txt").substr(0, 16 * 29 + 1));
  const std::string data = "--data.train " + path("few.txt") + " --train.eval_every 0 --data.last_batch ";
  std::set<std::vector<std::string>> different;
  for (const std::string last : {"wrap", "drop", "pad"}) {
    ASSERT_EQ(train(1, last, data + last).status, 0);
    const std::string run = last + "_resumed";
    ASSERT_EQ(train(4, run, data + last + " --train.stop_at 5").status, 0);
    ASSERT_EQ(train(3, run, data + last).status, 0);
    EXPECT_EQ(bits_of(run), bits_of(last)) << last;
    EXPECT_EQ(digest_of(run), digest_of(last));
    different.insert(bits_of(last));
    std::istringstream metrics(read(last + "/metrics.jsonl"));
    for (std::string line; std::getline(metrics, line);) {
      const nlohmann::json step = nlohmann::json::parse(line);
      EXPECT_EQ(step["tokens"], last == "pad" && step["step"].get<int>() % 3 == 0 ? 5 * 16 : 12 * 16) << last;
    }
  }
  EXPECT_EQ(different.size(), 3u);
  EXPECT_NE(train(1, "pad", data + "pad").output.find("7 rows of padding"), std::string::npos);
  const ProgramResult none = train(2, "none", data + "drop --train.global_batch 30");
  EXPECT_EQ(none.status, 64) << none.output;
  EXPECT_EQ(error_lines(none.output).size(), 1u) << none.output;
  EXPECT_EQ(train(2, "all", data + "pad --train.global_batch 30 --train.steps 2 --optim.warmup 0").status, 0);
}

TEST_F(TrainProgram, ASignalSavesAndAsksToBeStartedAgain) {
  for (const std::string signal : {"TERM", "USR2"}) {
    // A world of one without mpiexec, whose exit code would hide the program's.
    const std::string command = program("lamina") + " train " + path("run.ini") + " --run.dir " + path(signal) +
                                " --train.steps 100000 --train.eval_every 0";
    const ProgramResult result =
        run_command(command + " & pid=$!; until [ -s " + path(signal) +
                    "/metrics.jsonl ]; do sleep 0.05; done; sleep 0.2; kill -" + signal + " $pid; wait $pid; exit $?");
    EXPECT_EQ(result.status, 75) << result.output;
    EXPECT_TRUE(std::filesystem::exists(folder_ / signal / "latest"));
  }
}

// util-linux's script gives the command a terminal.
TEST_F(TrainProgram, ShowsOneLiveLineOnATerminalNoWiderThanIt) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) GTEST_SKIP() << "this machine gives no pseudo-terminals (in a chroot: mount /dev/pts)";
  ::close(terminal);
  for (const std::size_t columns : {80U, 60U}) {
    const std::string run = "run" + std::to_string(columns);
    const ProgramResult result = run_command("script -qec 'stty cols " + std::to_string(columns) + "; " +
                                             train_command(2, run, "--train.eval_every 0") + "' /dev/null");
    ASSERT_EQ(result.status, 0) << result.output;
    const std::string begin = "\r\033[K";
    std::size_t live_lines = 0;
    for (std::size_t at = result.output.find(begin); at != std::string::npos; at = result.output.find(begin, at + 1)) {
      const std::size_t end = result.output.find_first_of("\r\n", at + 1);
      if (end == std::string::npos || result.output[end] != '\r' || result.output[end + 1] == '\n') continue;
      ++live_lines;
      EXPECT_LT(end - at - begin.size(), columns) << result.output;
    }
    EXPECT_GE(live_lines, 7u) << result.output;
    for (const char* step : {"step 1/12", "step 5/12", "step 10/12", "step 12/12"})
      EXPECT_NE(read(run + "/log.txt").find(step), std::string::npos) << "log_every counts on terminals, too";
    EXPECT_EQ(read(run + "/log.txt").find("step 6/12"), std::string::npos);
  }
}

TEST_F(TrainProgram, TrainsOnTokenFilesAndHoldsThemToTheirTokenizer) {
  const ProgramResult made =
      run_command(program("lamina-tokenize") + " --tokenizer byte " + path("text.txt") + " --out " + path("text.h5"));
  ASSERT_EQ(made.status, 0) << made.output;
  const std::string data = "--data.train " + path("text.h5");
  ASSERT_EQ(train(2, "run", data + " --data.tokenizer auto").status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/step_00000012/model/tokenizer.json"))
      << "the data say that bytes are the tokens";
  const std::string other = std::string(LAMINA_SOURCE_DIR) + "/tests/tokenizer/goldens/base_gpt2.json";
  write_model("model", {{"vocab_size", 2000}});
  const ProgramResult refused =
      train(2, "other", data + " --data.tokenizer " + other + " --data.validation '' --train.eval_every 0");
  EXPECT_EQ(refused.status, 65) << refused.output;
  EXPECT_EQ(error_lines(refused.output).size(), 1u) << refused.output;
}

TEST_F(TrainProgram, MakesQwen2ModelsToo) {
  write_model("model",
              {{"model_type", "qwen2"}, {"architectures", {"Qwen2ForCausalLM"}}, {"tie_word_embeddings", false}});
  ASSERT_EQ(train(1, "alone").status, 0);
  ASSERT_EQ(train(3, "three").status, 0);
  EXPECT_EQ(bits_of("three"), bits_of("alone"));
}

}  // namespace
}  // namespace lamina::test
