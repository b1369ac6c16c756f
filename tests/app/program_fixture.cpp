#include "app/program_fixture.hpp"

#include <fstream>
#include <sstream>

#include <lamina/base/file.hpp>

namespace lamina::test {

namespace {

std::string sample_text() {
  std::string text;
  for (int i = 0; i < 120; ++i) {
    text += "In the beginning was line " + std::to_string(i * 7919 % 1009) + ", and the line was with the others.\n";
  }
  return text;
}

constexpr const char* config_text = R"([model]
path = MODEL
[data]
train = FOLDER/text.txt
validation = FOLDER/valid.txt
seq_len = 16
tokenizer = byte
[train]
steps = 12
global_batch = 12
micro_batch = 1
eval_every = 6
eval_sequences = 10
log_every = 5
[optim]
lr = 0.01
warmup = 2
[run]
seed = 3
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

ProgramTest::ProgramTest() {
  write_model("model");
  write("text.txt", sample_text());
  write("valid.txt", sample_text().substr(300, 900));
  write("run.ini", replaced(replaced(config_text, "MODEL", path("model")), "FOLDER", folder_.path().string()));
}

void ProgramTest::write_model(const std::string& name, const nlohmann::json& changes) {
  nlohmann::json config{{"model_type", "llama"},
                        {"architectures", {"LlamaForCausalLM"}},
                        {"hidden_size", 24},
                        {"intermediate_size", 40},
                        {"num_hidden_layers", 3},
                        {"num_attention_heads", 3},
                        {"num_key_value_heads", 1},
                        {"vocab_size", 257},
                        {"max_position_embeddings", 64},
                        {"rms_norm_eps", 1e-5},
                        {"hidden_act", "silu"},
                        {"tie_word_embeddings", true},
                        {"initializer_range", 0.05}};
  config.update(changes);
  std::filesystem::create_directories(folder_ / name);
  write(name + "/config.json", config.dump(2));
}

std::string ProgramTest::train_command(int ranks, const std::string& run, const std::string& arguments) const {
  return std::string(LAMINA_MPIEXEC) + " " + std::to_string(ranks) + " " + program("lamina") + " train " +
         path("run.ini") + " --run.dir " + path(run) + " " + arguments;
}

void ProgramTest::write(const std::string& name, const std::string& content) const {
  std::ofstream(folder_ / name, std::ios::binary) << content;
}

std::string ProgramTest::read(const std::string& name) const { return read_file(folder_ / name); }

std::vector<std::string> ProgramTest::bits_of(const std::string& run) const {
  std::istringstream in(read(run + "/metrics.jsonl"));
  std::vector<std::string> bits;
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    bits.push_back(json["step"].dump() + " " + json["loss_hex"].dump() + " " + json["grad_norm_hex"].dump() + " " +
                   json.value("val_loss_hex", ""));
  }
  return bits;
}

std::string ProgramTest::digest_of(const std::string& run) const {
  const ProgramResult result = run_command(program("lamina-inspect") + " --digest " + path(run) + " | tail -n 1");
  EXPECT_EQ(result.status, 0) << result.output;
  return result.output;
}

std::vector<std::string> error_lines(const std::string& output) {
  std::istringstream in(output);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("error:")) lines.push_back(line);
  }
  return lines;
}

bool can_mount() { return run_command("unshare --mount sh -c 'mount -t tmpfs -o size=1m tmpfs /mnt'").status == 0; }

}  // namespace lamina::test
