// `lamina plan`: what it prints, and what it refuses.
#include "app/program_fixture.hpp"

#include <iterator>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class PlanProgram : public ProgramTest {
 protected:
  [[nodiscard]] ProgramResult run_plan(const std::string& arguments) const {
    return run_command(program("lamina") + " plan " + path("run.ini") + " " + arguments);
  }
  [[nodiscard]] std::string plan(const std::string& arguments) const {
    const ProgramResult result = run_plan(arguments);
    EXPECT_EQ(result.status, 0) << result.output;
    return result.output;
  }
};

// The words of the first line that begins with `start`, without it; none if there is no such line.
std::vector<std::string> row(const std::string& text, const std::string& start) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(start)) continue;
    std::istringstream words(line.substr(start.size()));
    return {std::istream_iterator<std::string>(words), {}};
  }
  ADD_FAILURE() << "no line begins with '" << start << "' in\n" << text;
  return {};
}

// forward, backward, total in milliseconds.
std::vector<double> times(const std::string& text, const std::string& start) {
  std::vector<double> all;
  for (const std::string& word : row(text, start)) all.push_back(std::stod(word));
  EXPECT_EQ(all.size(), 3u);
  all.resize(3);
  return all;
}

TEST_F(PlanProgram, ListsUnitsAndTensors) {
  const std::string units = plan("--ranks 4 --nodes 2");
  EXPECT_THAT(row(units, "unit"), testing::Contains("gathers"));
  // A block of the fixture's model: (24 + 2 x 8) x 24 + 24 x 24 + 3 x 24 x 40 + 2 x 24.
  const auto words = row(units, "layers.0 to 2");  // alike: one row
  ASSERT_GE(words.size(), 5u);
  EXPECT_EQ(words[0], "3");
  EXPECT_EQ(words[1], "9");
  EXPECT_EQ(words[2], "4464");
  // A step of 3 micro-steps (12 sequences, 4 ranks): forward and backward; one bucket each.
  EXPECT_EQ(words[words.size() - 2], "6");
  EXPECT_EQ(words.back(), "3");
  EXPECT_EQ(row(units, "head").at(2), std::to_string(257 * 24 + 24));
  const auto total = row(units, "total");
  EXPECT_EQ(total.at(0), "4");
  EXPECT_EQ(total.at(2), std::to_string(3 * 4464 + 257 * 24 + 24));
  EXPECT_THAT(units, Not(HasSubstr("q_proj")));
  EXPECT_THAT(units, Not(HasSubstr("simulated")));
  const std::string tensors = plan("--tensors");
  EXPECT_THAT(tensors, HasSubstr("model.layers.2.self_attn.q_proj.weight"));
  EXPECT_THAT(tensors, HasSubstr("40 x 24"));
  EXPECT_THAT(tensors, HasSubstr("lm_head.weight"));  // the tied tensor's second name
}

TEST_F(PlanProgram, WhatIsWholeIsNotGathered) {
  for (const char* strategy : {"no_shard", "shard_optimizer"}) {
    const auto words = row(plan(std::string("--ranks 4 --parallel.strategy ") + strategy), "layers.0 to 2");
    ASSERT_EQ(words.size(), 9u);  // sizes are two words
    EXPECT_EQ(words[3] + words[4], words[5] + words[6]) << "the full unit lies on each rank";
    EXPECT_EQ(words[7], "0");
    EXPECT_EQ(words[8], "3");
  }
  const auto alone = row(plan("--ranks 1"), "layers.0 to 2");
  EXPECT_EQ(alone.at(7), "0");
  EXPECT_EQ(alone.at(8), "0");
}

TEST_F(PlanProgram, SaysWhetherTheMemoryIsThere) {
  const std::string enough = plan("--ranks 4 --nodes 2 --memory_gib 8");
  EXPECT_THAT(enough, HasSubstr("enough: a node has 8.00 GiB"));
  EXPECT_THAT(enough, HasSubstr("memory of a node: 2 rank(s) x"));
  EXPECT_THAT(plan("--ranks 4 --memory_gib 0.00001"), HasSubstr("NOT enough: a node has 10.5 KiB"));
  EXPECT_THAT(plan("--ranks 4"), HasSubstr("enough: this machine has"));
}

TEST_F(PlanProgram, TakesAModelFolderAndARunFolder) {
  const ProgramResult model =
      run_command(program("lamina") + " plan " + path("model") + " --ranks 16 --nodes 4 --data.seq_len 64");
  EXPECT_EQ(model.status, 0) << model.output;
  EXPECT_EQ(row(model.output, "total").at(2), std::to_string(3 * 4464 + 257 * 24 + 24));
  std::filesystem::create_directories(folder_ / "old");
  std::filesystem::copy_file(folder_ / "run.ini", folder_ / "old/config.ini");
  EXPECT_EQ(run_command(program("lamina") + " plan " + path("old")).output, plan(""));
  const ProgramResult nothing = run_command(program("lamina") + " plan " + folder_.path().string());
  EXPECT_EQ(nothing.status, 64);
  EXPECT_THAT(nothing.output, HasSubstr("config.json"));
}

// What train would refuse before its first step, plan refuses with the same words and exit code.
TEST_F(PlanProgram, ChecksWhatTrainChecks) {
  write_model("small_vocabulary", {{"vocab_size", 100}});
  write("empty.txt", "");
  for (const std::string& arguments :
       {"--data.train " + path("nowhere.txt"), "--data.train " + path("empty.txt"),
        "--model.path " + path("small_vocabulary"), std::string("--data.seq_len 65"),
        std::string("--compute.backend cuda"), "--data.tokenizer " + path("nowhere.json"),
        std::string("--optim.groups nothing:lr=1")}) {
    const ProgramResult planned = run_plan(arguments), trained = train(1, "refused", arguments);
    EXPECT_NE(planned.status, 0) << arguments;
    EXPECT_EQ(planned.status, trained.status) << arguments << "\n" << trained.output;
    EXPECT_EQ(error_lines(planned.output), error_lines(trained.output)) << arguments;
  }
  EXPECT_THAT(plan("--without_data --data.train nowhere.txt"), HasSubstr("data: not looked at"));
}

TEST_F(PlanProgram, SimulatesOverlap) {
  const std::string text = plan("--ranks 2 --simulate --gflops=2 --gather_gbs 0.1 --reduce_gbs 0.1 --latency_us 5");
  EXPECT_THAT(text, HasSubstr("assumed: 2 GFLOP/s a rank, 0.1 GB/s"));
  const auto in_turn = times(text, "without overlap"), overlapped = times(text, "with overlap");
  for (const auto& parts : {in_turn, overlapped}) EXPECT_NEAR(parts[0] + parts[1], parts[2], 0.0021);
  EXPECT_LT(overlapped[0], in_turn[0]);
  EXPECT_LT(overlapped[2], in_turn[2]);
  const double hidden = std::stod(row(text, "overlap:").at(0));
  EXPECT_GT(hidden, 0);
  EXPECT_LT(hidden, 100);
  EXPECT_THAT(text, HasSubstr("1.00 KiB"));
  EXPECT_THAT(text, HasSubstr("<- least"));
  EXPECT_EQ(row(text, "whole unit").at(0), "4");  // messages: one a unit
  // The same as the overlapped micro-step above.
  EXPECT_DOUBLE_EQ(std::stod(row(text, "whole unit").at(1)), overlapped[2]);
}

TEST_F(PlanProgram, SimulatesEveryStrategyAndRuleOfUnits) {
  for (const char* strategy : {"no_shard", "shard_optimizer", "shard_grad_op", "full", "hybrid", "hybrid_optimizer"}) {
    for (const char* units : {"layer", "block", "size:5000", "layers:2"}) {
      const std::string text = plan(std::string("--ranks 4 --nodes 2 --simulate --parallel.strategy ") + strategy +
                                    " --parallel.units " + units);
      EXPECT_LE(times(text, "with overlap")[2], times(text, "without overlap")[2]) << strategy << " " << units;
    }
  }
}

TEST_F(PlanProgram, OneRankOnlyComputes) {
  const std::string text = plan("--simulate --gflops 0.5");
  const auto in_turn = times(text, "without overlap"), overlapped = times(text, "with overlap");
  EXPECT_EQ(in_turn, overlapped);
  EXPECT_NEAR(in_turn[1], 2 * in_turn[0], 0.0021);
  EXPECT_NEAR(times(plan("--simulate --gflops 1"), "with overlap")[2], in_turn[2] / 2, 0.0011);
  EXPECT_THAT(text, Not(HasSubstr("bucket  ")));
}

TEST_F(PlanProgram, NoPrefetchHidesNoGather) {
  const std::string rates = "--ranks 4 --simulate --gflops 2 --gather_gbs 0.1 --parallel.prefetch ";
  const std::string none = plan(rates + "0"), one = plan(rates + "1");
  EXPECT_DOUBLE_EQ(times(none, "with overlap")[0], times(none, "without overlap")[0]);
  EXPECT_LT(times(one, "with overlap")[0], times(none, "with overlap")[0]);
}

TEST_F(PlanProgram, ExplainsItsOptions) {
  const std::string help = plan("--help");
  for (const char* option : {"--ranks", "--nodes", "--tensors", "--simulate", "--gather_gbs", "--reduce_gbs",
                             "--latency_us", "--gflops", "--parallel.prefetch"})
    EXPECT_THAT(help, HasSubstr(option));
  EXPECT_LT(help.find("--ranks N"), help.find("--run.dir"));
  EXPECT_EQ(plan("-h"), help);
}

TEST_F(PlanProgram, RefusesBadInput) {
  const std::vector<std::pair<std::string, std::string>> wrong{{"--ranks 0", "ranks"},
                                                               {"--ranks", "ranks"},
                                                               {"--ranks 4 --nodes 3", "--nodes 3"},
                                                               {"--ranks 5", "global_batch"},
                                                               {"--simulat", "simulat"},
                                                               {"--gflops 3", "--simulate"},
                                                               {"--simulate --gflops 0", "--gflops 0"},
                                                               {"--simulate --gflops -2", "--gflops -2"},
                                                               {"--simulate --gather_gbs nan", "gather_gbs"},
                                                               {"--simulate --latency_us=-1", "latency_us"},
                                                               {"--simulate --reduce_gbs fast", "reduce_gbs"},
                                                               {"--simulate=yes", "simulate"}};
  for (const auto& [arguments, word] : wrong) {
    const ProgramResult result = run_plan(arguments);
    EXPECT_EQ(result.status, 64) << arguments << "\n" << result.output;
    const auto lines = error_lines(result.output);
    ASSERT_EQ(lines.size(), 1u) << arguments << "\n" << result.output;
    EXPECT_THAT(lines[0], HasSubstr(word)) << arguments;
    EXPECT_THAT(result.output, Not(HasSubstr("parameters"))) << arguments;
  }
  EXPECT_EQ(run_plan("--model.path " + path("nowhere")).status, 65);
}

}  // namespace
}  // namespace lamina::test
