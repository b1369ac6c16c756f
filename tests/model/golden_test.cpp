// Against transformers and torch: tests/goldens, made by tools/goldens/make_goldens.py.
#include "tiny_models.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <lamina/base/file.hpp>
#include <lamina/model/generator.hpp>
#include <lamina/safetensors/reader.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lamina::test {
namespace {

namespace fs = std::filesystem;

const fs::path goldens = fs::path(LAMINA_SOURCE_DIR) / "tests" / "goldens";

std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(goldens)) {
    if (fs::exists(entry.path() / "golden.json")) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

// |a - b| / |b|, as vectors.
double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

class TensorFile {
 public:
  explicit TensorFile(const fs::path& folder, const std::string& stem) : folder_(folder, stem) {}
  [[nodiscard]] std::vector<float> read(const std::string& name) {
    const auto* place = folder_.find(name);
    EXPECT_NE(place, nullptr) << name;
    if (place == nullptr) return {};
    std::vector<float> values(static_cast<std::size_t>(folder_.entry(*place).elements));
    folder_.read(*place, 0, values);
    return values;
  }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto place : folder_.places()) names.insert(folder_.entry(place).name);
    return names;
  }
  [[nodiscard]] std::vector<std::int64_t> shape(const std::string& name) const {
    return folder_.entry(*folder_.find(name)).shape;
  }

 private:
  SafetensorsFolder folder_;
};

// Rows of the table printed at the end.
std::map<std::string, std::vector<std::string>>& table() {
  static std::map<std::string, std::vector<std::string>> rows;
  return rows;
}

class Golden : public ::testing::TestWithParam<std::string> {
 protected:
  Golden()
      : folder_(goldens / GetParam()),
        json_(nlohmann::json::parse(read_file(folder_ / "golden.json"))),
        truth_(folder_, "golden"),
        backend_(make_backend("cpu", 1)),
        model_(allocate_model(read_model_config(folder_), *backend_.device)) {
    TensorFile weights(folder_, "model");
    std::set<std::string> wanted;
    for (std::size_t u = 0; u < model_.units.size(); ++u) {
      std::vector<float> flat;
      for (const TensorSpec& tensor : model_.plan.units[u].tensors) {
        wanted.insert(tensor.name);
        EXPECT_EQ(weights.shape(tensor.name), tensor.shape) << tensor.name;
        std::ranges::copy(weights.read(tensor.name), std::back_inserter(flat));
      }
      std::ranges::copy(flat, model_.units[u].floats());
      weights_.push_back(std::move(flat));
    }
    EXPECT_EQ(weights.names(), wanted);
  }

  static void TearDownTestSuite() {
    fmt::print("{:<18}{:>16}{:>20}{:>18}{:>20}{:>14}\n", "model", "loss, rel.", "largest gradient", "largest logits",
               "3 AdamW steps", "tokens equal");
    for (const auto& [name, cells] : table()) {
      fmt::print("{:<18}{:>16}{:>20}{:>18}{:>20}{:>14}\n", name, cells[0], cells[1], cells[2], cells[3], cells[4]);
    }
  }
  static void note(std::size_t column, const std::string& cell) {
    auto& row = table()[GetParam()];
    row.resize(5);
    row[column] = cell;
  }

  [[nodiscard]] ReferenceBatch batch(std::size_t index) const {
    const auto& b = json_["batches"][index];
    return {.sequences = b["sequences"],
            .seq_len = b["seq_len"],
            .tokens = b["tokens"],
            .labels = b["labels"],
            .positions = {},
            .first_visible = {}};
  }
  [[nodiscard]] PassResult pass(const ReferenceBatch& b, bool training) {
    ModelRunner runner(model_.plan, *backend_.device, *backend_.ops, static_cast<std::int64_t>(b.sequences),
                       static_cast<std::int64_t>(b.seq_len), training);
    return run_pass(runner, model_.plan, weights_, b, training);
  }
  // The largest relative difference of any tensor to PREFIX.NAME of the goldens.
  [[nodiscard]] double largest_difference(const UnitVectors& units, const std::string& prefix) {
    double largest = 0;
    for (std::size_t u = 0; u < units.size(); ++u) {
      auto at = units[u].begin();
      for (const TensorSpec& tensor : model_.plan.units[u].tensors) {
        const std::vector<float> ours(at, at + tensor.elements());
        at += tensor.elements();
        const double difference = relative_difference(ours, truth_.read(prefix + tensor.name));
        EXPECT_LE(difference, 1e-5) << tensor.name;
        largest = std::max(largest, difference);
      }
    }
    return largest;
  }

  fs::path folder_;
  nlohmann::json json_;
  TensorFile truth_;
  Backend backend_;
  LoadedModel model_;
  UnitVectors weights_;
};

TEST_P(Golden, Losses) {
  double largest = 0;
  for (std::size_t i = 0; i < json_["batches"].size(); ++i) {
    const double expected = json_["batches"][i]["loss_sum"];
    const double difference = std::abs(pass(batch(i), false).loss_sum - expected) / expected;
    EXPECT_LE(difference, 1e-6);
    largest = std::max(largest, difference);
  }
  note(0, fmt::format("{:.1e}", largest));
}

TEST_P(Golden, Gradients) {
  note(1, fmt::format("{:.1e}", largest_difference(pass(batch(0), true).gradients, "grad.")));
}

TEST_P(Golden, Logits) {
  double largest = 0;
  Generator generator(model_, *backend_.device, *backend_.ops, 64);
  for (std::size_t i = 0; i < json_["batches"].size(); ++i) {
    const ReferenceBatch b = batch(i);
    const std::vector<float> expected = truth_.read("logits." + std::to_string(i));
    std::vector<float> ours;
    for (std::size_t row = 0; row < b.tokens.size(); ++row) {
      if (row % b.seq_len == 0) generator.reset();
      std::ranges::copy(generator.append(std::span(b.tokens).subspan(row, 1)), std::back_inserter(ours));
    }
    ASSERT_EQ(ours.size(), expected.size());
    largest = std::max(largest, relative_difference(ours, expected));
  }
  EXPECT_LE(largest, 1e-5);
  note(2, fmt::format("{:.1e}", largest));
}

TEST_P(Golden, AdamWSteps) {
  const auto& settings = json_["adamw"];
  UnitVectors first, second;
  for (const auto& unit : weights_) {
    first.emplace_back(unit.size(), 0.0F);
    second.emplace_back(unit.size(), 0.0F);
  }
  int count = 0;
  for (const std::size_t index : settings["batches"]) {
    ++count;
    const PassResult result = pass(batch(index), true);
    AdamWStep step{.lr = settings["lr"],
                   .beta1 = settings["beta1"],
                   .beta2 = settings["beta2"],
                   .eps = settings["eps"],
                   .grad_scale = static_cast<float>(1 / static_cast<double>(result.labelled))};
    step.bias1 = 1 - std::pow(settings["beta1"].get<double>(), count);
    step.bias2 = 1 - std::pow(settings["beta2"].get<double>(), count);
    for (std::size_t u = 0; u < weights_.size(); ++u) {
      std::size_t offset = 0;
      for (const TensorSpec& tensor : model_.plan.units[u].tensors) {
        const auto size = static_cast<std::size_t>(tensor.elements());
        step.weight_decay = tensor.decay ? settings["weight_decay"].get<float>() : 0.0F;
        const auto part = [&](UnitVectors& all) { return std::span(all[u]).subspan(offset, size); };
        backend_.ops->adamw(part(weights_), part(first), part(second),
                            std::span(result.gradients[u]).subspan(offset, size), step);
        offset += size;
      }
    }
  }
  note(3, fmt::format("{:.1e}", largest_difference(weights_, "after.")));
}

TEST_P(Golden, GreedyTokens) {
  const std::vector<std::int32_t> prompt = json_["prompt"], expected = json_["greedy"];
  Generator generator(model_, *backend_.device, *backend_.ops, 128);
  GenerateOptions options;
  options.max_new_tokens = static_cast<std::int64_t>(expected.size());
  const std::vector<std::int32_t> ours = generator.generate(prompt, options).tokens;
  EXPECT_EQ(ours, expected);
  const auto differs = std::ranges::mismatch(ours, expected).in1;
  note(4, fmt::format("{}/{}", differs - ours.begin(), expected.size()));
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, ::testing::ValuesIn(golden_models()), [](const auto& at) { return at.param; });

TEST(Goldens, CoverEveryFamily) {
  std::set<std::string> families;
  for (const std::string& name : golden_models()) families.insert(read_model_config(goldens / name).family);
  EXPECT_EQ(families, (std::set<std::string>{"gpt2", "llama", "mistral", "qwen2", "qwen3"}));
}

}  // namespace
}  // namespace lamina::test
