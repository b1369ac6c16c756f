// The training loss of a whole model against torch: goldens/training_loss, made by tools/goldens/make_loss_goldens.py.
#include "tiny_models.hpp"

#include <filesystem>

#include <lamina/base/file.hpp>
#include <lamina/safetensors/reader.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lamina::test {
namespace {

namespace fs = std::filesystem;
const fs::path tests_folder = fs::path(LAMINA_SOURCE_DIR) / "tests";

std::vector<float> tensor(SafetensorsFolder& folder, const std::string& name) {
  const auto* place = folder.find(name);
  EXPECT_NE(place, nullptr) << name;
  if (place == nullptr) return {};
  std::vector<float> values(static_cast<std::size_t>(folder.entry(*place).elements));
  folder.read(*place, 0, values);
  return values;
}

class TrainingLoss : public ::testing::Test {
 protected:
  TrainingLoss() {
    SafetensorsFolder file(folder_, "model");
    for (const UnitSpec& unit : plan_.units) {
      std::vector<float>& flat = weights_.emplace_back();
      for (const TensorSpec& spec : unit.tensors) {
        const std::vector<float> values = tensor(file, spec.name);
        flat.insert(flat.end(), values.begin(), values.end());
      }
    }
    const auto b = nlohmann::json::parse(read_file(folder_ / "golden.json"))["batches"][0];
    batch_.sequences = b["sequences"];
    batch_.seq_len = b["seq_len"];
    batch_.tokens = b["tokens"].get<std::vector<std::int32_t>>();
    batch_.labels = b["labels"].get<std::vector<std::int32_t>>();
  }

  PassResult pass(const LossTerms& terms, bool training) {
    ModelRunner runner(plan_, *backend_.device, *backend_.ops, static_cast<std::int64_t>(batch_.sequences),
                       static_cast<std::int64_t>(batch_.seq_len), true, terms);
    return run_pass(runner, plan_, weights_, batch_, training);
  }

  nlohmann::json golden_ = nlohmann::json::parse(read_file(tests_folder / "model/goldens/training_loss.json"));
  LossTerms terms_{golden_["label_smoothing"], golden_["z_loss"]};
  fs::path folder_ = tests_folder / "goldens" / golden_["model"].get<std::string>();
  Backend backend_ = make_backend("cpu", 1);
  ModelPlan plan_ = make_model_plan(read_model_config(folder_));
  UnitVectors weights_;
  ReferenceBatch batch_;
};

TEST_F(TrainingLoss, TorchGivesTheSame) {
  const PassResult ours = pass(terms_, true);
  const double expected = golden_["loss_sum"];
  EXPECT_NEAR(ours.loss_sum, expected, 1e-6 * expected);
  SafetensorsFolder truth(tests_folder / "model/goldens", "training_loss");
  for (const auto& [name, gradient] : by_name(plan_, ours.gradients)) {
    const std::vector<float> want = tensor(truth, name);
    ASSERT_EQ(gradient.size(), want.size()) << name;
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double w = static_cast<double>(want[i]);
      difference += (gradient[i] - w) * (gradient[i] - w);
      size += w * w;
    }
    EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(size)) << name;
  }
}

TEST_F(TrainingLoss, EvaluationIsTheCrossEntropyAlone) {
  const PassResult plain = pass({}, false);
  EXPECT_EQ(pass(terms_, false).token_losses, plain.token_losses);
  EXPECT_EQ(pass({}, true).token_losses, plain.token_losses);
  EXPECT_NE(pass(terms_, true).token_losses, plain.token_losses);
}

}  // namespace
}  // namespace lamina::test
