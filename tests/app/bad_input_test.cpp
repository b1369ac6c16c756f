// Bad input: one line for the user, the documented exit code, nothing overwritten, no hang.
#include "app/program_fixture.hpp"

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

class BadInput : public ProgramTest {
 protected:
  // Runs on 3 ranks and expects exactly one error line that contains `words`.
  void expect_refusal(int code, const std::vector<std::string>& words, const std::string& arguments) {
    const ProgramResult result = train(3, "run", arguments);
    EXPECT_EQ(result.status, code) << arguments << "\n" << result.output;
    const auto lines = error_lines(result.output);
    ASSERT_EQ(lines.size(), 1u) << arguments << "\n" << result.output;
    for (const std::string& word : words)
      EXPECT_NE(lines[0].find(word), std::string::npos) << word << " in " << lines[0];
    EXPECT_EQ(result.output.find("terminate called"), std::string::npos) << result.output;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "run" / "latest"));
  }
};

TEST_F(BadInput, OfTheCommandLine) {
  expect_refusal(64, {"optim.lrr", "optim.lr"}, "--optim.lrr 1");
  expect_refusal(64, {"train.steps"}, "--train.steps many");
  expect_refusal(64, {"parallel.strategy"}, "--parallel.strategy zero3");
  expect_refusal(64, {"parallel.prefetch"}, "--parallel.prefetch 4");
  expect_refusal(64, {"compute.backend", "LAMINA_CUDA=ON"}, "--compute.backend cuda");
}

TEST_F(BadInput, OfTheSharding) {
  expect_refusal(64, {"shard_size", "3 ranks"}, "--parallel.strategy hybrid --parallel.shard_size 2");
  expect_refusal(64, {"shard_size", "full"}, "--parallel.shard_size 3");
  expect_refusal(64, {"reshard_after_forward", "no_shard"},
                 "--parallel.strategy no_shard --parallel.reshard_after_forward no");
  expect_refusal(64, {"parallel.units", "layers:0"}, "--parallel.units layers:0");
  expect_refusal(64, {"parallel.units", "blocks"}, "--parallel.units blocks");
  expect_refusal(64, {"parallel.ignore", "'*conv*'", "matches nothing"}, "--parallel.ignore '*conv*'");
  expect_refusal(64, {"parallel.ignore", "of the 9 tensors of unit layers.0"}, "--parallel.ignore '*mlp*'");
  expect_refusal(64, {"parallel.ignore", "no_shard"}, "--parallel.ignore '*norm*' --parallel.strategy no_shard");
  expect_refusal(64, {"bucket_mb"}, "--parallel.bucket_mb 0");
  expect_refusal(64, {"reduce_each_micro_step", "reduction.order"},
                 "--parallel.reduce_each_micro_step no --reduction.order rank");
  expect_refusal(64, {"output.timeline"}, "--output.timeline 5:2");
  expect_refusal(64, {"pretend_nodes"}, "--run.pretend_nodes 2");
}

TEST_F(BadInput, OfTheMemory) {
  write_model("huge", {{"hidden_size", 65536},
                       {"intermediate_size", 262144},
                       {"num_hidden_layers", 400},
                       {"num_attention_heads", 512},
                       {"num_key_value_heads", 512},
                       {"head_dim", 128}});
  expect_refusal(64, {"3 rank(s) need", "TiB", "of shards", "of slots for units of up to", "(layers.0)"},
                 "--model.path " + path("huge"));
}

TEST_F(BadInput, OfTheBatch) {
  expect_refusal(64, {"global_batch"}, "--train.global_batch 10");
  expect_refusal(64, {"global_batch"}, "--train.global_batch 2");  // more ranks than sequences
  expect_refusal(64, {"global_batch"}, "--train.micro_batch 5");
  expect_refusal(64, {"seq_len", "64"}, "--data.seq_len 65");
  expect_refusal(64, {"global_batch", "cannot be counted"}, "--train.global_batch 4611686018427387903");
  expect_refusal(64, {"global_batch", "micro-steps"}, "--train.global_batch 1200000000000");
}

TEST_F(BadInput, OfTheConfigFile) {
  const std::string prefix = std::string(LAMINA_MPIEXEC) + " 2 " + program("lamina") + " train ";
  const ProgramResult missing = run_command(prefix + path("none.ini"));
  EXPECT_EQ(missing.status, 64) << missing.output;
  EXPECT_EQ(error_lines(missing.output).size(), 1u) << missing.output;
  write("bad.ini", "[train]\nstep = 5\n");
  const ProgramResult unknown = run_command(prefix + path("bad.ini"));
  EXPECT_EQ(unknown.status, 64) << unknown.output;
  ASSERT_EQ(error_lines(unknown.output).size(), 1u) << unknown.output;
  EXPECT_NE(unknown.output.find("bad.ini:2"), std::string::npos) << unknown.output;
  EXPECT_NE(unknown.output.find("steps"), std::string::npos) << unknown.output;
}

TEST_F(BadInput, OfTheModel) {
  expect_refusal(65, {"nowhere"}, "--model.path " + path("nowhere"));
  expect_refusal(65, {"nothing from the Hugging Face hub", "hf download org/name"}, "--model.path org/name");
  write_model("strange", {{"model_type", "mamba"}});
  expect_refusal(65, {"mamba"}, "--model.path " + path("strange"));
  write("strange/config.json", "{\"model_type\": \"llama\", ");
  expect_refusal(65, {"config.json"}, "--model.path " + path("strange"));
  expect_refusal(65, {"safetensors"}, "--model.init pretrained");
}

TEST_F(BadInput, OfTheData) {
  expect_refusal(65, {"missing.txt"}, "--data.train " + path("missing.txt"));
  write("short.txt", "abc");
  expect_refusal(65, {"short.txt"}, "--data.train " + path("short.txt"));
  write_model("narrow", {{"vocab_size", 100}});
  expect_refusal(65, {"id 110 ('n')", "ends at 99"}, "--model.path " + path("narrow"));
  write("tokens.bin", std::string(1001, 'x'));  // an odd number of bytes cannot be uint16 tokens
  expect_refusal(65, {"tokens.bin"}, "--data.train " + path("tokens.bin"));
  write("high.bin", std::string(2000, '\x7f'));  // ids 32639
  expect_refusal(65, {"high.bin", "32639"}, "--data.train " + path("high.bin"));
  std::string wide;  // uint32
  for (int id = 20; id < 250; ++id) wide += std::string{static_cast<char>(id), 0, 0, 0};
  write("wide.bin", wide);
  expect_refusal(65, {"wide.bin", "in doubt", "data.bin_dtype"}, "--data.train " + path("wide.bin"));
  write_model("large", {{"vocab_size", 70000}});
  expect_refusal(65, {"high.bin", "70000", "data.bin_dtype"},
                 "--model.path " + path("large") + " --data.train " + path("high.bin"));
}

TEST_F(BadInput, OfTheRunFolder) {
  write("file", "not a folder");
  const ProgramResult result = train(2, "file");
  EXPECT_EQ(result.status, 64) << result.output;
  EXPECT_EQ(error_lines(result.output).size(), 1u) << result.output;
  EXPECT_EQ(read("file"), "not a folder");
}

TEST_F(BadInput, NeverDoesNotOverwrite) {
  ASSERT_EQ(train(2, "run").status, 0);
  const std::string before = read("run/metrics.jsonl");
  const ProgramResult result = train(2, "run", "--run.resume never");
  EXPECT_EQ(result.status, 64) << result.output;
  EXPECT_EQ(error_lines(result.output).size(), 1u) << result.output;
  EXPECT_EQ(read("run/metrics.jsonl"), before);
}

TEST_F(BadInput, OfTheCheckpoint) {
  ASSERT_EQ(train(2, "run").status, 0);
  const ProgramResult none = train(2, "other", "--run.resume " + path("model"));
  EXPECT_EQ(none.status, 66) << none.output;
  EXPECT_EQ(error_lines(none.output).size(), 1u) << none.output;
  // A flipped bit inside a shard is found before a step is taken.
  run_command("printf '\\377' | dd of=" + path("run/step_00000012/rank_00001.h5") + " bs=1 seek=9000 conv=notrunc");
  const ProgramResult flipped = train(3, "run", "--train.steps 15");
  EXPECT_EQ(flipped.status, 66) << flipped.output;
  EXPECT_EQ(error_lines(flipped.output).size(), 1u) << flipped.output;
  EXPECT_NE(flipped.output.find("rank_00001.h5"), std::string::npos) << flipped.output;
}

TEST_F(BadInput, DivergenceEndsTheRunWithoutSavingIt) {
  expect_refusal(65, {"diverged", "optim.lr"}, "--optim.lr 1e30 --optim.grad_clip 0 --optim.warmup 0 --train.steps 50");
}

TEST_F(BadInput, SingletonsOfALargerJobAreRefused) {
  const std::string command = program("lamina") + " train " + path("run.ini") + " --run.dir " + path("run");
  const ProgramResult result = run_command("SLURM_NTASKS=4 " + command);
  EXPECT_EQ(result.status, 64) << result.output;
  ASSERT_EQ(error_lines(result.output).size(), 1u) << result.output;
  EXPECT_NE(result.output.find("--mpi=pmix"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("SLURM_NTASKS=1 lamina train"), std::string::npos) << result.output;
  EXPECT_EQ(run_command("SLURM_NTASKS=1 " + command).status, 0) << "as the message says";
}

TEST_F(BadInput, OfOtherCommands) {
  const std::vector<std::pair<std::string, int>> commands{
      {"lamina fly", 64},
      {"lamina", 64},
      {"lamina generate --model " + path("model"), 64},
      {"lamina generate --model " + path("nowhere") + " --prompt x", 65},
      {"lamina generate --model " + path("model") + " --prompt x", 65},
      {"lamina eval --model " + path("model"), 64},
      {"lamina generate --model org/name --prompt x", 65},
      {"lamina-consolidate " + path("model") + " " + path("out"), 66},
      {"lamina-inspect " + path("nowhere"), 65}};
  for (const auto& [command, code] : commands) {
    const ProgramResult result = run_command(std::string(LAMINA_BIN_DIR) + "/" + command);
    EXPECT_EQ(result.status, code) << command << "\n" << result.output;
    if (command != "lamina") {
      EXPECT_EQ(error_lines(result.output).size(), 1u) << command << "\n" << result.output;
    }
  }
}

}  // namespace
}  // namespace lamina::test
