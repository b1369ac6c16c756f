#include "checkpoint/sample_checkpoint.hpp"
#include "support/temporary_folder.hpp"

#include <cmath>

#include <lamina/checkpoint/digest.hpp>
#include <lamina/checkpoint/folder_tensors.hpp>
#include <lamina/checkpoint/pretrained_reader.hpp>
#include <lamina/checkpoint/shard_reader.hpp>
#include <lamina/safetensors/writer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina {
namespace {

using test::message_of;
using testing::AllOf;
using testing::HasSubstr;

class Pretrained : public testing::Test {
 protected:
  // Writes tensors with their sample values, under other names where `names` says so.
  void write(std::vector<TensorSpec> tensors, DType dtype = DType::f32, std::uint64_t max_file_bytes = 1'000) {
    std::vector<TensorToWrite> headers;
    std::vector<float> values;
    for (const TensorSpec& tensor : tensors) {
      headers.push_back({rename(tensor.name), dtype, tensor.shape});
      for (std::int64_t i = 0; i < tensor.elements(); ++i) {
        values.push_back(change(tensor.name, i, test::sample_value(value_name(tensor.name), i, StateKind::param)));
      }
    }
    SafetensorsFolderWriter writer(folder_.path(), "model", headers, max_file_bytes, ExitCode::data);
    writer.write(values);
    writer.finish();
  }
  static std::vector<TensorSpec> sample_tensors() {
    std::vector<TensorSpec> tensors;
    for (const UnitSpec& unit : test::sample_units()) {
      tensors.insert(tensors.end(), unit.tensors.begin(), unit.tensors.end());
    }
    return tensors;
  }
  static std::string value_name(const std::string& name) { return name == "lm_head.weight" ? "embed.weight" : name; }

  std::function<std::string(const std::string&)> rename = [](const std::string& name) { return name; };
  std::function<float(const std::string&, std::int64_t, float)> change = [](const auto&, auto, float v) { return v; };
  test::TemporaryFolder folder_;
};

TEST_F(Pretrained, EachRankReadsItsOwnSliceOnly) {
  write(sample_tensors());
  const std::vector<UnitSpec> units = test::sample_units();
  for (const std::int64_t world : {1, 3, 8}) {
    for (std::int64_t rank = 0; rank < world; ++rank) {
      PretrainedReader reader(folder_.path(), units);
      std::uint64_t expected_bytes = 0;
      for (const UnitSpec& unit : units) {
        const FlatLayout layout(unit, world, test::sample_alignment);
        const FlatRange range = layout.block_range(rank);
        std::vector<float> values(static_cast<std::size_t>(range.length()), 9.0f);
        reader.read(layout, range, values);
        EXPECT_EQ(values, test::sample_values(layout, range, StateKind::param));
        expected_bytes += 4 * static_cast<std::uint64_t>(layout.owned_range(rank).length());
      }
      EXPECT_EQ(reader.bytes_read(), expected_bytes);
    }
  }
}

TEST_F(Pretrained, ReadsSixteenBits) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    change = [](const auto&, std::int64_t i, float) { return static_cast<float>(i % 100) * 0.25f; };
    write(sample_tensors(), dtype, 1'000'000);
    const std::vector<UnitSpec> units = test::sample_units();
    PretrainedReader reader(folder_.path(), units);
    const FlatLayout layout(units[0], 1, 1);
    std::vector<float> values(1010);
    reader.read(layout, {0, 1010}, values);
    EXPECT_EQ(values[10 + 77], 19.25f);
    EXPECT_EQ(reader.bytes_read(), 2020u);
  }
}

TEST_F(Pretrained, TakesATiedTensorUnderEitherName) {
  rename = [](const std::string& name) { return name == "embed.weight" ? "lm_head.weight" : name; };
  write(sample_tensors());
  const std::vector<UnitSpec> units = test::sample_units();
  PretrainedReader reader(folder_.path(), units);
  const FlatLayout layout(units[1], 1, 1);
  std::vector<float> values(static_cast<std::size_t>(layout.elements()));
  reader.read(layout, layout.block_range(0), values);
  EXPECT_EQ(values, test::sample_values(layout, layout.block_range(0), StateKind::param));
}

TEST_F(Pretrained, TakesATiedTensorUnderBothNamesOnlyWhenTheyAgree) {
  std::vector<TensorSpec> tensors = sample_tensors();
  tensors.push_back({"lm_head.weight", {13, 3}, true, {}});
  const std::vector<UnitSpec> units = test::sample_units();
  const FlatLayout layout(units[1], 1, 1);
  std::vector<float> values(static_cast<std::size_t>(layout.elements()));
  write(tensors);
  PretrainedReader(folder_.path(), units).read(layout, layout.block_range(0), values);
  change = [](const std::string& name, std::int64_t i, float v) {
    return name == "lm_head.weight" && i == 38 ? 1.5f : v;
  };
  write(tensors);
  EXPECT_THAT(message_of<DataError>(
                  [&] { PretrainedReader(folder_.path(), units).read(layout, layout.block_range(0), values); }),
              HasSubstr("embed.weight and lm_head.weight differ although config.json ties them"));
}

TEST_F(Pretrained, AcceptsBaseModelsAndIgnoresKnownBuffers) {
  const UnitSpec unit{"layers.0", {{"transformer.h.0.ln_1.weight", {4}, false, {}}, {"score.weight", {2}, true, {}}}};
  std::vector<TensorSpec> tensors = unit.tensors;
  tensors.push_back({"transformer.h.0.attn.bias", {1, 1, 2, 2}, true, {}});
  tensors.push_back({"transformer.h.0.attn.masked_bias", {}, true, {}});
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {3}, true, {}});
  for (const bool stripped : {false, true}) {
    rename = [&](const std::string& name) {
      return stripped && name.starts_with("transformer.") ? name.substr(12) : name;
    };
    write(tensors);
    PretrainedReader reader(folder_.path(), std::span(&unit, 1));
    const FlatLayout layout(unit, 1, 1);
    std::vector<float> values(6);
    reader.read(layout, {0, 6}, values);
    EXPECT_EQ(values, test::sample_values(layout, {0, 6}, StateKind::param));
  }
}

TEST_F(Pretrained, IsStrictBothWays) {
  rename = [](const std::string& name) { return name == "seven" ? "eight" : name; };
  write(sample_tensors());
  const std::vector<UnitSpec> units = test::sample_units();
  EXPECT_THAT(message_of<DataError>([&] { PretrainedReader(folder_.path(), units); }),
              AllOf(HasSubstr("lacks seven"), HasSubstr("holds eight, which the model does not have")));
  rename = [](const std::string& name) { return name; };
  std::vector<TensorSpec> tensors = sample_tensors();
  tensors[3].shape = {7, 1};
  write(tensors);
  EXPECT_THAT(message_of<DataError>([&] { PretrainedReader(folder_.path(), units); }),
              HasSubstr("seven has shape [7, 1] there and [7] in this model"));
}

TEST_F(Pretrained, RefusesNanAndInfinity) {
  const std::vector<UnitSpec> units = test::sample_units();
  const FlatLayout layout(units[0], 1, 1);
  std::vector<float> values(static_cast<std::size_t>(layout.elements()));
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    change = [&](const std::string& name, std::int64_t i, float v) { return name == "matrix" && i == 500 ? bad : v; };
    write(sample_tensors());
    EXPECT_THAT(message_of<DataError>(
                    [&] { PretrainedReader(folder_.path(), units).read(layout, layout.block_range(0), values); }),
                HasSubstr("element 500 of matrix is"));
  }
}

TEST_F(Pretrained, DigestsDependOnNamesAndValuesOnly) {
  write(sample_tensors());
  FolderTensors whole(folder_.path());
  const ModelDigest expected = digest_of(whole);
  ASSERT_EQ(expected.tensors.size(), 8u);
  EXPECT_TRUE(std::is_sorted(expected.tensors.begin(), expected.tensors.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const std::int64_t world : {1, 4}) {
    ShardReader reader(test::save_sample(folder_ / "run", 1, world));
    CheckpointTensors tensors(reader, StateKind::param);
    const ModelDigest digest = digest_of(tensors);
    EXPECT_EQ(digest.all, expected.all);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(digest.tensors[i].digest, expected.tensors[i].digest);
    CheckpointTensors moments(reader, StateKind::exp_avg);
    EXPECT_NE(digest_of(moments).all, expected.all);
  }
  change = [](const std::string& name, std::int64_t i, float v) { return name == "norm" && i == 4 ? -0.0f : v; };
  write(sample_tensors());
  FolderTensors changed(folder_.path());
  EXPECT_NE(digest_of(changed).all, expected.all);
  change = [](const auto&, auto, float v) { return v; };
  rename = [](const std::string& name) { return name == "norm" ? "morn" : name; };
  write(sample_tensors());
  FolderTensors renamed(folder_.path());
  EXPECT_NE(digest_of(renamed).all, expected.all);
  EXPECT_EQ(hex_digest(0xab), "00000000000000ab");
}

}  // namespace
}  // namespace lamina
