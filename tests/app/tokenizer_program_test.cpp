// Which tokenizer text is read with, what travels with a model, and where a generated text ends.
#include "app/program_fixture.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TokenizerPrograms : public ProgramTest {
 protected:
  // A GPT-2 whose logits are 0 but for one token: it always says that one.
  void write_model_that_says(const std::string& name, std::int32_t token,
                             const nlohmann::json& config = nlohmann::json::object()) {
    nlohmann::json all{
        {"model_type", "gpt2"}, {"vocab_size", 257}, {"n_embd", 2},         {"n_layer", 1},
        {"n_head", 1},          {"n_positions", 64}, {"eos_token_id", 256}, {"tie_word_embeddings", false}};
    all.update(config);
    std::filesystem::create_directories(folder_ / name);
    write(name + "/config.json", all.dump());
    const std::vector<std::pair<std::string, std::vector<std::size_t>>> tensors{
        {"lm_head.weight", {257, 2}},
        {"transformer.ln_f.bias", {2}},
        {"transformer.ln_f.weight", {2}},
        {"transformer.wte.weight", {257, 2}},
        {"transformer.wpe.weight", {64, 2}},
        {"transformer.h.0.ln_1.weight", {2}},
        {"transformer.h.0.ln_1.bias", {2}},
        {"transformer.h.0.attn.c_attn.weight", {2, 6}},
        {"transformer.h.0.attn.c_attn.bias", {6}},
        {"transformer.h.0.attn.c_proj.weight", {2, 2}},
        {"transformer.h.0.attn.c_proj.bias", {2}},
        {"transformer.h.0.ln_2.weight", {2}},
        {"transformer.h.0.ln_2.bias", {2}},
        {"transformer.h.0.mlp.c_fc.weight", {2, 8}},
        {"transformer.h.0.mlp.c_fc.bias", {8}},
        {"transformer.h.0.mlp.c_proj.weight", {8, 2}},
        {"transformer.h.0.mlp.c_proj.bias", {2}}};
    nlohmann::ordered_json header{{"__metadata__", nullptr}};
    std::vector<float> values;
    for (const auto& [tensor, shape] : tensors) {
      std::size_t elements = 1;
      for (const std::size_t size : shape) elements *= size;
      const std::size_t begin = values.size() * sizeof(float), end = begin + elements * sizeof(float);
      header[tensor] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, end}}};
      values.resize(values.size() + elements);
    }
    values[static_cast<std::size_t>(token) * 2] = 5;  // lm_head
    values[257 * 2] = 1;                              // the final bias
    const std::string text = header.dump();
    std::string file(sizeof(std::uint64_t), '\0');
    const std::uint64_t length = text.size();
    std::memcpy(file.data(), &length, sizeof(length));
    file += text + std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    write(name + "/model.safetensors", file);
  }

  [[nodiscard]] ProgramResult generate(const std::string& model, const std::string& arguments) const {
    return run_command(program("lamina") + " generate --prompt Hi --max_tokens 9 --greedy --model " + path(model) +
                       " " + arguments);
  }
};

TEST_F(TokenizerPrograms, TextWithoutTheModelsTokenizerIsRefused) {
  write_model_that_says("says", 65);
  const ProgramResult none = generate("says", "");
  EXPECT_EQ(none.status, 65) << none.output;
  EXPECT_THAT(none.output, AllOf(HasSubstr("there is no tokenizer.json"), HasSubstr("no tokenizer at all"),
                                 HasSubstr("save_pretrained"), HasSubstr("byte")));
  write("says/tokenizer.model", "sentencepiece");
  const ProgramResult other = generate("says", "");
  EXPECT_EQ(other.status, 65) << other.output;
  EXPECT_THAT(other.output, HasSubstr("it holds only tokenizer.model"));
  const ProgramResult eval = run_command(program("lamina") + " eval --model " + path("says") + " --data " +
                                         path("valid.txt") + " --seq_len 16");
  EXPECT_EQ(eval.status, 65) << eval.output;
  EXPECT_THAT(eval.output, HasSubstr("there is no tokenizer.json"));
  const ProgramResult fine_tuned =
      train(2, "refused", "--data.tokenizer auto --model.init pretrained --model.path " + path("says"));
  EXPECT_EQ(fine_tuned.status, 65) << fine_tuned.output;
  EXPECT_EQ(error_lines(fine_tuned.output).size(), 1U) << fine_tuned.output;
  const ProgramResult random = train(1, "refused", "--data.tokenizer auto --model.path " + path("says"));
  EXPECT_EQ(random.status, 65) << "random weights, but somebody meant tokenizer.model: " << random.output;
  const ProgramResult bytes = generate("says", "--tokenizer byte");
  EXPECT_EQ(bytes.status, 0) << bytes.output;
  EXPECT_THAT(bytes.output, HasSubstr("HiAAAAAAAAA"));
}

TEST_F(TokenizerPrograms, BytesOfRandomWeightsAreSaid) {
  const ProgramResult result = train(1, "run", "--data.tokenizer auto --train.steps 2 --optim.warmup 0");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("text is read as bytes"));
}

TEST_F(TokenizerPrograms, EverySideFileOfTheModelTravels) {
  write_model_that_says("says", 65);
  for (const char* file : {"tokenizer.model", "LICENSE", "modeling_own.py", "preprocessor_config.json", ".hidden"}) {
    write("says/" + std::string(file), file);
  }
  write("says/pytorch_model.bin", "weights");
  write("own.json", "{}");
  // Tokens that nobody knows the tokenizer of: the model's own files stay.
  write("ids.bin", std::string(4000, '\1'));
  const std::string common =
      "--model.init pretrained --train.steps 2 --optim.warmup 0 --train.eval_every 0 --data.validation= --model.path " +
      path("says") + " --data.train ";
  const ProgramResult result =
      train(1, "run", common + path("ids.bin") + " --data.tokenizer auto --data.bin_dtype uint16");
  ASSERT_EQ(result.status, 65) << "257 is no id of the model: " << result.output;
  write("ids.bin", [] {
    std::string ids;
    for (int i = 0; i < 2000; ++i) ids += {static_cast<char>(i % 251), '\0'};
    return ids;
  }());
  const ProgramResult again =
      train(1, "run", common + path("ids.bin") + " --data.tokenizer auto --data.bin_dtype uint16");
  ASSERT_EQ(again.status, 0) << again.output;
  const ProgramResult out = run_command(program("lamina-consolidate") + " " + path("run") + " " + path("out"));
  ASSERT_EQ(out.status, 0) << out.output;
  for (const char* file : {"tokenizer.model", "LICENSE", "modeling_own.py", "preprocessor_config.json"}) {
    EXPECT_EQ(read("out/" + std::string(file)), file);
  }
  for (const char* file : {".hidden", "pytorch_model.bin", "tokenizer.json"}) {
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out" / file)) << file;
  }
  // Bytes that were asked for take the place of the model's tokenizer, and of nothing else.
  const ProgramResult bytes = train(1, "bytes", common + path("text.txt") + " --data.tokenizer byte");
  ASSERT_EQ(bytes.status, 0) << bytes.output;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "bytes/step_00000002/model/tokenizer.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bytes/step_00000002/model/tokenizer.model"));
  EXPECT_EQ(read("bytes/step_00000002/model/LICENSE"), "LICENSE");
}

TEST_F(TokenizerPrograms, GenerationEndsAtEveryIdOfTheGenerationConfig) {
  write_model_that_says("says", 65);
  EXPECT_THAT(generate("says", "--tokenizer byte").output, HasSubstr("9 new in"));
  write("says/generation_config.json", R"({"eos_token_id": [256, 65]})");
  const ProgramResult stopped = generate("says", "--tokenizer byte");
  EXPECT_THAT(stopped.output, AllOf(HasSubstr(" 1 new in"), HasSubstr("end of text")));
  EXPECT_THAT(generate("says", "--tokenizer byte --ignore_eos").output, HasSubstr("9 new in"));
  write("says/generation_config.json", R"({"temperature": 0.7})");
  write_model_that_says("says", 65, {{"eos_token_id", {256, 65}}});
  EXPECT_THAT(generate("says", "--tokenizer byte").output, HasSubstr(" 1 new in"));
}

TEST_F(TokenizerPrograms, IdsBeyondTheVocabularyAreRefusedWhereTheyOccur) {
  write_model("narrow", {{"vocab_size", 256}});  // the byte tokenizer has 257 ids
  const std::string narrow =
      "--train.steps 2 --optim.warmup 0 --train.eval_every 0 --data.validation= --model.path " + path("narrow");
  const ProgramResult fits = train(1, "fits", narrow);
  EXPECT_EQ(fits.status, 0) << fits.output;
  write("long.jsonl", "{\"text\": \"" + std::string(300, 'a') + "\"}\n");
  const ProgramResult beyond = train(1, "beyond", narrow + " --data.train " + path("long.jsonl"));
  EXPECT_EQ(beyond.status, 65) << beyond.output;
  EXPECT_THAT(beyond.output, AllOf(HasSubstr("long.jsonl: token 300 has id 256 ('<|endoftext|>')"),
                                   HasSubstr("vocabulary ends at 255")));
  const ProgramResult without =
      train(1, "without", narrow + " --data.append_eos no --data.train " + path("long.jsonl"));
  EXPECT_EQ(without.status, 0) << without.output;
}

TEST_F(TokenizerPrograms, MisspeltKeysOfTheConfigAreSaid) {
  write_model("slip", {{"rms_norm_epz", 1e-5}});
  const ProgramResult result =
      train(1, "run",
            "--train.steps 1 --optim.warmup 0 --train.eval_every 0 --data.validation= --model.path " + path("slip"));
  EXPECT_EQ(result.status, 0) << result.output;
  const auto slip = HasSubstr("\"rms_norm_epz\" is not known and without effect; is \"rms_norm_eps\" meant?");
  EXPECT_THAT(result.output, slip);
  const ProgramResult planned =
      run_command(program("lamina") + " plan " + path("run.ini") + " --model.path " + path("slip"));
  EXPECT_EQ(planned.status, 0) << planned.output;
  EXPECT_THAT(planned.output, slip);
}

}  // namespace
}  // namespace lamina::test
