// From a run to a model that is used: consolidate, generate, evaluate, fine-tune.
#include "app/program_fixture.hpp"

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

class ModelPrograms : public ProgramTest {
 protected:
  ModelPrograms() {
    EXPECT_EQ(train(2, "run", "--train.steps 30").status, 0);
    const ProgramResult result = run_command(program("lamina-consolidate") + " " + path("run") + " " + path("out"));
    EXPECT_EQ(result.status, 0) << result.output;
  }
  [[nodiscard]] std::string generate(const std::string& arguments) const {
    const ProgramResult result = run_command(program("lamina") + " generate --quiet --model " + path("out") +
                                             " --prompt 'In the ' --max_tokens 20 " + arguments);
    EXPECT_EQ(result.status, 0) << result.output;
    return result.output;
  }
};

TEST_F(ModelPrograms, TheModelIsTheCheckpoint) {
  EXPECT_EQ(digest_of("out"), digest_of("run"));
  for (const char* file : {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / "out" / file)) << file;
  }
}

TEST_F(ModelPrograms, GenerationContinuesThePromptAndRepeatsItself) {
  const std::string greedy = generate("--greedy");
  EXPECT_EQ(greedy.rfind("In the ", 0), 0u) << greedy;
  EXPECT_EQ(generate("--greedy --seed 5"), greedy);
  EXPECT_EQ(generate("--temperature 0"), greedy);
  EXPECT_EQ(generate("--top_k 1 --seed 9"), greedy);
  EXPECT_EQ(generate("--seed 7"), generate("--seed 7"));
  EXPECT_NE(generate("--seed 7 --temperature 1.5 --top_p 1"), generate("--seed 8 --temperature 1.5 --top_p 1"));
}

TEST_F(ModelPrograms, EvaluationAgreesWithTheValidationOfTraining) {
  // Windows that train saw with the next token as last label hold the same tokens here, without that label: close, not
  // equal.
  const ProgramResult result = run_command(program("lamina") + " eval --json --model " + path("out") + " --data " +
                                           path("valid.txt") + " --seq_len 16 --batch 3");
  ASSERT_EQ(result.status, 0) << result.output;
  const nlohmann::json json = nlohmann::json::parse(result.output);
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(json["loss"].get<double>()), 1e-9);
  EXPECT_NEAR(json["bits_per_byte"].get<double>(), json["loss"].get<double>() / std::log(2.0),
              1e-9);  // one byte a token
  EXPECT_EQ(json["tokens"], json["bytes"]);
  EXPECT_LT(json["loss"].get<double>(), 5.0);
  // Independent of how many windows are computed at once.
  const ProgramResult one = run_command(program("lamina") + " eval --json --model " + path("out") + " --data " +
                                        path("valid.txt") + " --seq_len 16");
  EXPECT_NEAR(nlohmann::json::parse(one.output)["loss"].get<double>(), json["loss"].get<double>(), 1e-5);
}

TEST_F(ModelPrograms, MultipleChoiceIsScored) {
  write(
      "questions.jsonl",
      R"({"context": "In the beginning was line 12, and the line was with the ", "choices": ["others.", "zebras?"], "answer": 0})"
      "\n"
      R"({"context": "In the beg", "choices": ["\u0007\u0007\u0007\u0007", "inning"], "answer": 1})"
      "\n");
  const ProgramResult result =
      run_command(program("lamina") + " eval --json --model " + path("out") + " --choices " + path("questions.jsonl"));
  ASSERT_EQ(result.status, 0) << result.output;
  const nlohmann::json json = nlohmann::json::parse(result.output);
  EXPECT_EQ(json["questions"], 2);
  EXPECT_EQ(json["acc"], 1.0);
  EXPECT_EQ(json["acc_norm"], 1.0);
}

// Windows of 512 tokens do not fit a model of 64 positions: without --seq_len they are as long as it allows.
TEST_F(ModelPrograms, EvaluationTakesTheModelsPositions) {
  const std::string command =
      program("lamina") + " eval --json --model " + path("out") + " --data " + path("valid.txt");
  const ProgramResult chosen = run_command(command), asked = run_command(command + " --seq_len 64");
  ASSERT_EQ(chosen.status, 0) << chosen.output;
  EXPECT_EQ(chosen.output, asked.output);
  EXPECT_EQ(run_command(command + " --seq_len 512").status, 64);
  EXPECT_EQ(run_command(command + " --seq_len 1").status, 64);
}

TEST_F(ModelPrograms, FineTuningStartsFromThePretrainedWeights) {
  const std::string arguments =
      "--model.init pretrained --model.path " + path("out") + " --train.steps 5 --optim.lr 0.001";
  ASSERT_EQ(train(1, "one", arguments).status, 0);
  ASSERT_EQ(train(2, "two", arguments).status, 0);
  EXPECT_EQ(bits_of("one"), bits_of("two"));
  EXPECT_EQ(digest_of("one"), digest_of("two"));
  const nlohmann::json first =
      nlohmann::json::parse(read("one/metrics.jsonl").substr(0, read("one/metrics.jsonl").find('\n')));
  EXPECT_LT(first["loss"].get<double>(), 4.9) << "random weights would give about log(257) = 5.55";
}

TEST_F(ModelPrograms, ConsolidationIsTheSameForEveryNumberOfRanks) {
  ASSERT_EQ(train(4, "four", "--train.steps 30").status, 0);
  ASSERT_EQ(run_command(program("lamina-consolidate") + " " + path("four") + " " + path("out4")).status, 0);
  EXPECT_EQ(read("out4/model.safetensors"), read("out/model.safetensors"));
}

}  // namespace
}  // namespace lamina::test
