// What counts as a target, and what the numbers of a run and of `lamina eval` are then.
#include "app/program_fixture.hpp"

#include <filesystem>
#include <sstream>

#include <lamina/base/file.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Labels : public ProgramTest {
 protected:
  Labels() {
    write_model("model", {{"vocab_size", 264}, {"max_position_embeddings", 128}});
    write("questions.jsonl", chat("Hi there, who are you today?", "") + chat("And what do you do?", ""));
  }
  // A conversation; without an answer no token of it counts.
  static std::string chat(const std::string& question, const std::string& answer) {
    nlohmann::json messages{{{"role", "user"}, {"content", question}}};
    if (!answer.empty()) messages.push_back({{"role", "assistant"}, {"content", answer}});
    return nlohmann::json{{"messages", messages}}.dump() + "\n";
  }
  [[nodiscard]] std::string on(const std::string& data) const {
    return "--data.train " + path(data) +
           " --data.tokenizer " LAMINA_SOURCE_DIR "/inputs/chat_tokenizer --data.validation '' --train.eval_every 0 ";
  }
  [[nodiscard]] std::vector<nlohmann::json> metrics(const std::string& run) const {
    std::istringstream in(read(run + "/metrics.jsonl"));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
};

TEST_F(Labels, DataWithoutAnyAreRefused) {
  const ProgramResult trained = train(2, "run", on("questions.jsonl"));
  EXPECT_EQ(trained.status, 65) << trained.output;
  EXPECT_THAT(trained.output, HasSubstr("questions.jsonl: no token of its"));
  write("answered.jsonl", chat("Hi", "Yes, and more than that."));
  const ProgramResult validated =
      train(1, "run", on("answered.jsonl") + "--data.validation " + path("questions.jsonl") + " --train.eval_every 1");
  EXPECT_EQ(validated.status, 65) << validated.output;
  EXPECT_THAT(validated.output, HasSubstr("questions.jsonl: no token of its"));
}

// Windows of 16 tokens; most hold a part of the question only. With one sequence a step many steps have no label.
TEST_F(Labels, AStepWithoutAnyIsSkippedAndSaidAndHasNoLoss) {
  write("long.jsonl", chat(std::string(200, 'q'), "Yes, and more than that."));
  const std::string arguments = on("long.jsonl") + "--train.steps 14 --optim.warmup 0 --train.global_batch ";
  const ProgramResult result = train(1, "one", arguments + "1");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("of them without any label: nothing is learned from these"));
  EXPECT_THAT(result.output, HasSubstr("no token has a label: nothing is learned"));
  EXPECT_THAT(result.output, Not(HasSubstr("nan")));
  std::int64_t without = 0;
  for (const nlohmann::json& line : metrics("one")) {
    const bool none = line["tokens"] == 0;
    without += none ? 1 : 0;
    EXPECT_EQ(line["loss"].is_null(), none) << line;
    EXPECT_EQ(line.value("skipped", false), none) << line;
    EXPECT_GT(line["tok_s"].get<double>(), 0) << line;
  }
  EXPECT_GT(without, 5);
  EXPECT_THAT(result.output, HasSubstr(std::to_string(without) + " of 14 steps were skipped"));
  // Two ranks of two: one may be without labels while the other is not. All agree, to the bit.
  ASSERT_EQ(train(1, "alone", arguments + "2").status, 0);
  ASSERT_EQ(train(2, "both", arguments + "2").status, 0);
  EXPECT_EQ(bits_of("both"), bits_of("alone"));
}

TEST_F(Labels, EvaluationCountsBytesOfTargetsWhateverTheBatch) {
  write_model("model", {{"vocab_size", 1159}, {"max_position_embeddings", 128}});
  write("model/tokenizer.json", read_file(LAMINA_SOURCE_DIR "/tests/tokenizer/goldens/base_llama2.json"));
  write("model/tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>"})");
  std::string text;  // characters of two to four bytes, which windows cut
  for (int i = 0; i < 60; ++i) text += "the law of caf\xC3\xA9 and \xF0\x9F\x98\x80\xE2\x82\xAC of the words,\n";
  write("words.txt", text);
  const ProgramResult run =
      train(1, "run", "--data.tokenizer auto --train.steps 4 --data.validation '' --train.eval_every 0");
  ASSERT_EQ(run.status, 0) << run.output;
  ASSERT_EQ(run_command(program("lamina-consolidate") + " " + path("run") + " " + path("out")).status, 0);
  const auto evaluate = [&](const std::string& arguments) {
    const ProgramResult result = run_command(program("lamina") + " eval --json --model " + path("out") + " --data " +
                                             path("words.txt") + " " + arguments);
    EXPECT_EQ(result.status, 0) << result.output;
    return nlohmann::json::parse(result.output);
  };
  for (const int seq_len : {7, 16}) {
    const nlohmann::json one = evaluate("--seq_len " + std::to_string(seq_len) + " --batch 1");
    for (const int batch : {2, 3, 5, 64}) {
      const nlohmann::json other =
          evaluate("--seq_len " + std::to_string(seq_len) + " --batch " + std::to_string(batch));
      EXPECT_EQ(other["bytes"], one["bytes"]) << batch;
      EXPECT_EQ(other["tokens"], one["tokens"]) << batch;
      // Matrix products of other shapes round differently, in single precision.
      EXPECT_NEAR(other["loss"].get<double>(), one["loss"].get<double>(), 1e-6) << batch;
      EXPECT_NEAR(other["bits_per_byte"].get<double>(), one["bits_per_byte"].get<double>(), 1e-6) << batch;
    }
  }
  // One window: all but <s>. The space that SentencePiece puts in front belongs to the first word's token.
  write("short.txt", "the law of caf\xC3\xA9 \xF0\x9F\x98\x80 words");
  const ProgramResult whole = run_command(program("lamina") + " eval --json --model " + path("out") + " --data " +
                                          path("short.txt") + " --seq_len 64");
  ASSERT_EQ(whole.status, 0) << whole.output;
  EXPECT_EQ(nlohmann::json::parse(whole.output)["bytes"], 28);
}

TEST_F(Labels, EvaluationWithoutAnyIsRefused) {
  for (const auto& side : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}) {
    if (const auto file = std::filesystem::path(LAMINA_SOURCE_DIR "/inputs/chat_tokenizer") / side;
        std::filesystem::exists(file))
      write(std::string("model/") + side, read_file(file));
  }
  write("answered.jsonl", chat("Hi", "Yes, and more than that."));
  ASSERT_EQ(train(1, "run", on("answered.jsonl") + "--train.steps 2").status, 0);
  ASSERT_EQ(run_command(program("lamina-consolidate") + " " + path("run") + " " + path("out")).status, 0);
  const ProgramResult result =
      run_command(program("lamina") + " eval --model " + path("out") + " --data " + path("questions.jsonl"));
  EXPECT_EQ(result.status, 65) << result.output;
  EXPECT_THAT(result.output, HasSubstr("has a label"));
  EXPECT_THAT(result.output, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace lamina::test
