// `lamina chat`: a model fine-tuned as inputs/finetune_chat.ini says talks, through a pipe and in a terminal.
#include "app/program_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class ChatProgram : public ProgramTest {
 protected:
  // A model that has learned one conversation by heart; two of its turns have an answer each.
  ChatProgram() {
    write_model("model", {{"vocab_size", 264},
                          {"max_position_embeddings", 256},
                          {"hidden_size", 48},
                          {"intermediate_size", 96},
                          {"num_hidden_layers", 2}});
    write("chat.jsonl", R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes."},)"
                        R"( {"role": "user", "content": "Bye"}, {"role": "assistant", "content": "Go on, please."}]})"
                        "\n");
    const ProgramResult run =
        train(1, "chat",
              "--data.train " + path("chat.jsonl") +
                  " --data.tokenizer " LAMINA_SOURCE_DIR
                  "/inputs/chat_tokenizer --data.validation '' --train.eval_every 0 --data.seq_len 64 "
                  "--train.steps 60 --train.global_batch 2");
    EXPECT_EQ(run.status, 0) << run.output;
    EXPECT_EQ(run_command(program("lamina-consolidate") + " " + path("chat") + " " + path("out")).status, 0);
  }
  // What stands on standard output after `turns` came on standard input.
  [[nodiscard]] ProgramResult chat(const std::string& turns, const std::string& arguments = "") const {
    return run_command("printf '" + turns + "' | " + program("lamina") + " chat --greedy --model " + path("out") + " " +
                       arguments);
  }
};

TEST_F(ChatProgram, AnswersTurnsOfAPipe) {
  const ProgramResult both = chat("Hi\\nBye\\n");
  EXPECT_EQ(both.status, 0);
  EXPECT_EQ(both.output, "Yes.\nGo on, please.\n");
  EXPECT_EQ(chat("Hi\\n/exit\\nBye\\n").output, "Yes.\n");
  EXPECT_EQ(chat("\\n\\nHi").output, "Yes.\n") << "empty lines are no turns; the last line may lack its end";
  // After /reset the second turn is a first one, as if nothing had been said.
  const std::string alone = chat("Bye\\n").output;
  EXPECT_EQ(chat("Hi\\n/reset\\nBye\\n").output, "Yes.\n" + alone);
  EXPECT_EQ(chat("Hi\\n", "--temperature 0.01 --seed 5").output, "Yes.\n");
  EXPECT_EQ(chat("Hi\\n", "--max_tokens 2").output, "Ye\n[cut at --max_tokens]\n");
}

TEST_F(ChatProgram, SaysWhenTheConversationIsFull) {
  const ProgramResult full = chat("Hi\\nBye\\n", "--context 45");
  EXPECT_EQ(full.status, 64);
  EXPECT_THAT(full.output, HasSubstr("Yes.\n"));
  EXPECT_THAT(full.output, HasSubstr("the conversation is full"));
  EXPECT_THAT(full.output, HasSubstr("/reset"));
}

// A terminal gets a prompt for each turn, and a mistake does not end the conversation.
TEST_F(ChatProgram, TalksInATerminal) {
  const std::string command = program("lamina") + " chat --greedy --context 45 --model " + path("out");
  const ProgramResult result =
      run_command("printf 'Hi\\nBye\\n/reset\\nHi\\n/exit\\n' | script -qec '" + command + "' /dev/null");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("> "));
  EXPECT_THAT(result.output, HasSubstr("/exit ends"));
  EXPECT_THAT(result.output, HasSubstr("the conversation is full"));
  EXPECT_THAT(result.output, HasSubstr("[forgotten]"));
  const std::size_t first = result.output.find("Yes.");
  ASSERT_NE(first, std::string::npos) << result.output;
  EXPECT_NE(result.output.find("Yes.", first + 1), std::string::npos) << result.output;
}

TEST_F(ChatProgram, RefusesAModelWithoutATemplate) {
  std::filesystem::remove(folder_ / "out/chat_template.jinja");
  write("out/tokenizer_config.json", R"({"eos_token": "<|endoftext|>"})");
  const ProgramResult none = chat("Hi\\n");
  EXPECT_EQ(none.status, 65);
  EXPECT_THAT(none.output, HasSubstr("chat template"));
  EXPECT_THAT(none.output, HasSubstr("lamina generate"));
}

TEST_F(ChatProgram, ARunOrCheckpointIsNoModel) {
  for (const char* command : {"chat", "generate --prompt x", "eval --data x.txt"}) {
    const std::string start = program("lamina") + " " + command + " --model ";
    const ProgramResult run = run_command(start + path("chat"));
    EXPECT_EQ(run.status, 65) << command;
    EXPECT_THAT(run.output, HasSubstr("is a run folder, not a model")) << command;
    EXPECT_THAT(run.output, HasSubstr("lamina-consolidate " + path("chat"))) << command;
    const ProgramResult checkpoint = run_command(start + path("chat/step_00000060"));
    EXPECT_THAT(checkpoint.output, HasSubstr("is a checkpoint, not a model")) << command;
  }
  ASSERT_EQ(run_command("cp -r " + path("out") + " " + path("chat/model")).status, 0);
  const ProgramResult run =
      run_command(program("lamina") + " plan " + path("run.ini") + " --model.path " + path("chat"));
  EXPECT_THAT(run.output, HasSubstr("name " + path("chat/model")));
}

}  // namespace
}  // namespace lamina::test
