// lamina-consolidate and lamina-inspect as whole programs.
#include "checkpoint/sample_checkpoint.hpp"
#include "support/run_program.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <fstream>

#include <lamina/base/file.hpp>
#include <lamina/checkpoint/pretrained_reader.hpp>
#include <lamina/hdf5/file.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/safetensors/reader.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lamina {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* tiny_config = R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "vocab_size": 11, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2,
  "num_attention_heads": 3, "num_key_value_heads": 1, "max_position_embeddings": 64,
  "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": true,
  "bos_token_id": 1, "eos_token_id": [2, 3], "torch_dtype": "bfloat16", "my_own_field": {"kept": [1.5]}
})";

test::SampleModel model_of(const std::string& config_json) {
  return {make_model_plan(parse_model_config(config_json, "test")).units, config_json, true, {}};
}

class Tools : public testing::Test {
 protected:
  static test::ProgramResult run(const std::string& program, const std::string& arguments) {
    return test::run_command(fmt::format("'{}/{}' {}", LAMINA_BIN_DIR, program, arguments));
  }
  [[nodiscard]] test::ProgramResult consolidate(const std::string& more = "") const {
    return run("lamina-consolidate", fmt::format("{} {} {}", run_.string(), out_.string(), more));
  }
  [[nodiscard]] std::string digest(const fs::path& path) const {
    const test::ProgramResult result = run("lamina-inspect", "--digest " + path.string());
    EXPECT_EQ(result.status, 0) << result.output;
    return result.output;
  }
  static std::vector<std::string> names(const fs::path& folder) {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator(folder)) result.push_back(entry.path().filename());
    std::sort(result.begin(), result.end());
    return result;
  }

  test::TemporaryFolder folder_;
  fs::path run_ = folder_ / "run", out_ = folder_ / "out";
  test::SampleModel model_ = model_of(tiny_config);
};

TEST_F(Tools, ConsolidatedWeightsHaveTheCheckpointsDigest) {
  for (const std::int64_t world : {1, 4}) {
    const fs::path saved = test::save_sample(run_, 7, world, 0, model_);
    fs::remove_all(out_);
    const test::ProgramResult result = consolidate();
    ASSERT_EQ(result.status, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("step 7"));
    EXPECT_THAT(names(out_),
                ElementsAre("config.json", "generation_config.json", "model.safetensors", "tokenizer.json"));
    EXPECT_EQ(digest(out_), digest(run_));
    EXPECT_EQ(digest(out_), digest(saved));
    PretrainedReader reader(out_, model_.units);  // strict both ways
    const FlatLayout layout(model_.units[0], 1, 1);
    std::vector<float> values(static_cast<std::size_t>(layout.elements()));
    reader.read(layout, layout.block_range(0), values);
    EXPECT_EQ(values, test::sample_values(layout, layout.block_range(0), StateKind::param));
  }
}

TEST_F(Tools, TheConfigKeepsEveryOtherField) {
  test::save_sample(run_, 7, 2, 0, model_);
  ASSERT_EQ(consolidate().status, 0);
  json expected = json::parse(tiny_config);
  expected["torch_dtype"] = "float32";
  EXPECT_EQ(json::parse(read_file(out_ / "config.json")), expected);
  const json generation = json::parse(read_file(out_ / "generation_config.json"));
  EXPECT_EQ(generation.at("bos_token_id"), 1);
  EXPECT_EQ(generation.at("eos_token_id"), json({2, 3}));
  EXPECT_EQ(read_file(out_ / "tokenizer.json"), "{\"model\": 1}");
}

TEST_F(Tools, Bf16IsRoundedToNearestEven) {
  test::save_sample(run_, 7, 3, 0, model_);
  ASSERT_EQ(consolidate("--dtype bf16").status, 0);
  EXPECT_EQ(json::parse(read_file(out_ / "config.json")).at("torch_dtype"), "bfloat16");
  SafetensorsFolder weights(out_);
  for (const SafetensorsFolder::Place place : weights.places()) {
    const SafetensorsEntry& entry = weights.entry(place);
    EXPECT_EQ(entry.dtype, DType::bf16);
    std::vector<float> values(static_cast<std::size_t>(entry.elements));
    weights.read(place, 0, values);
    for (std::int64_t i = 0; i < entry.elements; ++i) {
      const float master = test::sample_value(entry.name, i, StateKind::param);
      ASSERT_EQ(values[static_cast<std::size_t>(i)], bf16_to_float(float_to_bf16(master)));
    }
  }
}

TEST_F(Tools, SplitsBySizeWithAnIndex) {
  test::save_sample(run_, 7, 3, 0, model_);
  ASSERT_EQ(consolidate("--max-shard-size 2KB").status, 0);
  const json index = json::parse(read_file(out_ / "model.safetensors.index.json"));
  std::int64_t elements = 0;
  std::size_t tensors = 0;
  for (const UnitSpec& unit : model_.units) {
    elements += unit.elements();
    tensors += unit.tensors.size();
  }
  EXPECT_EQ(index.at("metadata").at("total_size"), elements * 4);
  EXPECT_EQ(index.at("weight_map").size(), tensors);
  EXPECT_FALSE(index.at("weight_map").contains("lm_head.weight"));  // tied: stored once
  EXPECT_EQ(digest(out_), digest(run_));
}

TEST_F(Tools, ExportsHdf5AndTheOptimizer) {
  test::save_sample(run_, 7, 3, 0, model_);
  ASSERT_EQ(consolidate("--format hdf5 --optimizer").status, 0);
  EXPECT_THAT(names(out_), ElementsAre("config.json", "generation_config.json", "model.h5", "optimizer.h5",
                                       "optimizer.json", "tokenizer.json"));
  const hdf5::File file = hdf5::File::open_read_only(out_ / "optimizer.h5");
  const hdf5::Dataset dataset = file.open_dataset("model.norm.weight.exp_avg_sq");
  EXPECT_EQ(dataset.shape(), (std::vector<std::int64_t>{12}));
  std::vector<float> value(1);
  dataset.read(5, std::span(value));
  EXPECT_EQ(value[0], test::sample_value("model.norm.weight", 5, StateKind::exp_avg_sq));
  EXPECT_EQ(json::parse(read_file(out_ / "optimizer.json")).at("step"), 12);
  fs::remove_all(out_);
  ASSERT_EQ(consolidate("--format hdf5 --dtype bf16").status, 0);
  const hdf5::File weights = hdf5::File::open_read_only(out_ / "model.h5");
  EXPECT_EQ(weights.open_dataset("model.embed_tokens.weight").element(), hdf5::Element::bf16);
  fs::remove_all(out_);
  ASSERT_EQ(consolidate("--optimizer").status, 0);
  SafetensorsFolder optimizer(out_, "optimizer");
  EXPECT_NE(optimizer.find("model.embed_tokens.weight.exp_avg"), nullptr);
}

TEST_F(Tools, ExportAveragedWeights) {
  const fs::path saved = test::save_sample(run_, 7, 3, 0, model_);
  const test::ProgramResult result = consolidate("--weights ema");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("ema weights fp32"));
  EXPECT_EQ(digest(out_), run("lamina-inspect", "--digest --weights ema " + saved.string()).output);
  EXPECT_NE(digest(out_), digest(saved));
  PretrainedReader reader(out_, model_.units);
  const FlatLayout layout(model_.units[0], 1, 1);
  std::vector<float> values(static_cast<std::size_t>(layout.elements()));
  reader.read(layout, layout.block_range(0), values);
  EXPECT_EQ(values, test::sample_values(layout, layout.block_range(0), StateKind::ema));
  EXPECT_THAT(run("lamina-inspect", saved.string()).output,
              HasSubstr("optimizer adamw, holds param, exp_avg, exp_avg_sq, ema"));
}

TEST_F(Tools, ExportTheSecondMomentsThatThereAre) {
  model_.no_exp_avg_sq = {"model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight"};
  const fs::path saved = test::save_sample(run_, 7, 3, 0, model_);
  ASSERT_EQ(consolidate("--optimizer").status, 0);
  SafetensorsFolder optimizer(out_, "optimizer");
  EXPECT_NE(optimizer.find("model.layers.0.mlp.up_proj.weight.exp_avg"), nullptr);
  EXPECT_EQ(optimizer.find("model.layers.0.mlp.up_proj.weight.exp_avg_sq"), nullptr);
  EXPECT_NE(optimizer.find("model.layers.0.mlp.gate_proj.weight.exp_avg_sq"), nullptr);
  EXPECT_THAT(run("lamina-inspect", saved.string()).output, HasSubstr("exp_avg_sq (of 18 of 20 tensors)"));
  EXPECT_THAT(run("lamina-inspect", (saved / "rank_00000.h5").string()).output, HasSubstr("exp_avg_sq_spans"));
}

TEST_F(Tools, RefuseAveragesThatAreNotThere) {
  model_.averaged = false;
  const fs::path saved = test::save_sample(run_, 7, 2, 0, model_);
  for (const auto& result :
       {consolidate("--weights ema"), run("lamina-inspect", "--digest --weights ema " + saved.string())}) {
    EXPECT_EQ(result.status, 66);
    EXPECT_THAT(result.output, HasSubstr("optim.ema_decay was 0"));
  }
  EXPECT_THAT(names(folder_.path()), ElementsAre("run"));
  EXPECT_EQ(run("lamina-inspect", "--weights ema " + saved.string()).status, 64);
  ASSERT_EQ(consolidate().status, 0);
  EXPECT_EQ(run("lamina-inspect", "--digest --weights ema " + out_.string()).status, 64);
}

TEST_F(Tools, RefuseADamagedCheckpointAndLeaveNothing) {
  const fs::path saved = test::save_sample(run_, 7, 2, 0, model_);
  test::flip_byte(saved / "rank_00001.h5", fs::file_size(saved / "rank_00001.h5") - 100);
  const test::ProgramResult result = consolidate();
  EXPECT_EQ(result.status, 66);
  EXPECT_THAT(result.output, AllOf(HasSubstr("rank_00001.h5"), HasSubstr("checksum")));
  EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1);
  EXPECT_THAT(names(folder_.path()), ElementsAre("run"));
}

TEST_F(Tools, RefuseACheckpointThatIsNotTheConfigsModel) {
  test::SampleModel other = model_;
  other.units.back().tensors.front().name = "surprise";
  test::save_sample(run_, 7, 2, 0, other);
  const test::ProgramResult result = consolidate();
  EXPECT_EQ(result.status, 66);
  EXPECT_THAT(result.output, AllOf(HasSubstr("lacks model.embed_tokens.weight"), HasSubstr("holds surprise")));
}

TEST_F(Tools, RefuseAnOutputInUse) {
  test::save_sample(run_, 7, 2, 0, model_);
  fs::create_directories(out_);
  EXPECT_EQ(consolidate().status, 0);  // empty: fine
  EXPECT_EQ(consolidate().status, 64);
  EXPECT_THAT(consolidate().output, HasSubstr("not an empty folder"));
  EXPECT_EQ(digest(out_), digest(run_));
}

TEST_F(Tools, RefuseWrongArguments) {
  EXPECT_EQ(run("lamina-consolidate", "").status, 64);
  EXPECT_EQ(run("lamina-consolidate", "a b --dtype fp16").status, 64);
  EXPECT_EQ(run("lamina-consolidate", "a b --max-shard-size 5XB").status, 64);
  EXPECT_EQ(run("lamina-consolidate", "a b --max-shard-size 0").status, 64);
  EXPECT_EQ(run("lamina-consolidate", "a b --max-shard-size 1GB --format hdf5").status, 64);
  const test::ProgramResult unknown = run("lamina-consolidate", "a b --dtyp bf16");
  EXPECT_EQ(unknown.status, 64);
  EXPECT_THAT(unknown.output, HasSubstr("dtype"));
  EXPECT_EQ(run("lamina-consolidate", "--help").status, 0);
  EXPECT_EQ(run("lamina-consolidate", (folder_ / "nowhere").string() + " " + out_.string()).status, 66);
  EXPECT_EQ(run("lamina-inspect", (folder_ / "nowhere").string()).status, 65);
  EXPECT_EQ(run("lamina-inspect", folder_.path().string()).status, 66);
  EXPECT_EQ(run("lamina-inspect", "").status, 64);
  EXPECT_EQ(run("lamina-inspect", "--version").status, 0);
  std::ofstream(folder_ / "x.safetensors") << "garbage";
  EXPECT_EQ(run("lamina-inspect", (folder_ / "x.safetensors").string()).status, 65);
}

TEST_F(Tools, ReportAFullDiskAndLeaveNothing) {
  const fs::path saved = test::save_sample(run_, 7, 2, 0, model_);
  for (const char* format : {"safetensors", "hdf5"}) {
    const test::ProgramResult result =
        test::run_command(fmt::format("trap '' XFSZ; ulimit -f 2; '{}/lamina-consolidate' {} {} --format {}",
                                      LAMINA_BIN_DIR, run_.string(), out_.string(), format));
    EXPECT_EQ(result.status, 66) << result.output;
    EXPECT_THAT(result.output, HasSubstr("File too large"));
    EXPECT_THAT(names(folder_.path()), ElementsAre("run"));
  }
  // /dev/full stands for a full disk behind a redirection.
  EXPECT_EQ(test::run_command(fmt::format("'{}/lamina-inspect' {} >/dev/full", LAMINA_BIN_DIR, saved.string())).status,
            65);
}

TEST_F(Tools, ConsolidateInBoundedMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more address space than is allowed here";
#endif
  // Largest tensor: 48 MB. Without staging limits the model would need twice as much as is allowed here.
  std::string config = tiny_config;
  const auto replace = [&](const std::string& from, const std::string& to) {
    config.replace(config.find(from), from.size(), to);
  };
  replace("\"vocab_size\": 11", "\"vocab_size\": 1000000");
  const test::SampleModel big = model_of(config);
  test::save_sample(run_, 1, 2, 0, big);
  const auto under_limit = [&](const std::string& more) {
    fs::remove_all(out_);
    return test::run_command(fmt::format("ulimit -v {}; '{}/lamina-consolidate' {} {} {}", 3 * 48'000, LAMINA_BIN_DIR,
                                         run_.string(), out_.string(), more));
  };
  for (const char* more : {"", "--dtype bf16 --optimizer", "--format hdf5 --dtype bf16"}) {
    const test::ProgramResult result = under_limit(more);
    EXPECT_EQ(result.status, 0) << result.output;
  }
}

TEST_F(Tools, InspectDescribesEverything) {
  const fs::path saved = test::save_sample(run_, 7, 2, 0, model_);
  fs::create_directories(run_ / "step_00000009");
  const std::string run_text = run("lamina-inspect", run_.string()).output;
  EXPECT_THAT(run_text, AllOf(HasSubstr("step_00000007"), HasSubstr("complete"), HasSubstr("no manifest"),
                              HasSubstr("newest: " + saved.string())));
  const std::string text = run("lamina-inspect", saved.string()).output;
  EXPECT_THAT(text, AllOf(HasSubstr("saved by 2 ranks"), HasSubstr("model.embed_tokens.weight"), HasSubstr("[11, 12]"),
                          HasSubstr("also lm_head.weight"), HasSubstr("rank_00001.h5"), HasSubstr("layers.1")));
  const std::string hdf5_text = run("lamina-inspect", (saved / "rank_00000.h5").string()).output;
  EXPECT_THAT(hdf5_text, AllOf(HasSubstr("/layers.0/exp_avg_sq"), HasSubstr("dtype = F32"), HasSubstr("rank = 0")));
  ASSERT_EQ(consolidate("--dtype bf16").status, 0);
  EXPECT_THAT(run("lamina-inspect", out_.string()).output, AllOf(HasSubstr("BF16"), HasSubstr("model.norm.weight")));
  EXPECT_THAT(run("lamina-inspect", (out_ / "model.safetensors").string()).output, HasSubstr("format = pt"));
}

}  // namespace
}  // namespace lamina
