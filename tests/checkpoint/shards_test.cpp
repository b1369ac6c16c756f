#include "checkpoint/sample_checkpoint.hpp"
#include "support/temporary_folder.hpp"

#include <cstring>
#include <fstream>

#include <lamina/checkpoint/shard_reader.hpp>
#include <lamina/hdf5/file.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina {
namespace {

using test::message_of;
using testing::AllOf;
using testing::HasSubstr;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

class Shards : public testing::Test {
 protected:
  test::TemporaryFolder folder_;
};

TEST_F(Shards, AnyWorldReadsAnyCheckpoint) {
  for (const std::int64_t writers : {1, 4, 7}) {
    const auto saved = test::save_sample(folder_.path(), writers, writers);
    ShardReader reader(saved);
    reader.check_units(test::sample_units());
    EXPECT_TRUE(reader.has(StateKind::exp_avg) && reader.has(StateKind::exp_avg_sq));
    for (const std::int64_t readers : {1, 2, 3, 5, 6, 8, 400}) {
      for (const std::int64_t alignment : {std::int64_t{1}, std::int64_t{16}, FlatLayout::default_alignment}) {
        for (const UnitSpec& unit : test::sample_units()) {
          const FlatLayout layout(unit, readers, alignment);
          for (std::int64_t block = 0; block < readers; ++block) {
            for (const StateKind kind : all_state_kinds) {
              const FlatRange range = layout.block_range(block);
              std::vector<float> values(static_cast<std::size_t>(range.length()), 9.0f);
              reader.read(layout, range, kind, values);
              ASSERT_TRUE(same_bits(values, test::sample_values(layout, range, kind)))
                  << writers << " " << readers << " " << unit.name << " " << block;
            }
          }
        }
      }
      if (writers != 4 && readers > 3) break;
    }
  }
}

TEST_F(Shards, ReadsIntoOtherUnits) {
  ShardReader reader(test::save_sample(folder_.path(), 1, 4));
  UnitSpec merged{"all", {}};
  for (const UnitSpec& unit : test::sample_units()) {
    merged.tensors.insert(merged.tensors.begin(), unit.tensors.begin(), unit.tensors.end());
  }
  reader.check_units(std::span(&merged, 1));
  const FlatLayout layout(merged, 3, 7);
  for (std::int64_t block = 0; block < 3; ++block) {
    const FlatRange range = layout.block_range(block);
    std::vector<float> values(static_cast<std::size_t>(range.length()));
    reader.read(layout, range, StateKind::exp_avg, values);
    EXPECT_TRUE(same_bits(values, test::sample_values(layout, range, StateKind::exp_avg)));
  }
}

TEST_F(Shards, ReadsOnlyWhatIsAskedFor) {
  ShardReader reader(test::save_sample(folder_.path(), 1, 4));
  std::vector<float> values(5);
  reader.read_tensor("matrix", 700, StateKind::param, values);
  EXPECT_EQ(reader.bytes_read(), 20u);
  EXPECT_EQ(values[3], test::sample_value("matrix", 703, StateKind::param));
  reader.read_tensor("lm_head.weight", 1, StateKind::param, values);
  EXPECT_EQ(values[0], test::sample_value("embed.weight", 1, StateKind::param));
}

TEST_F(Shards, AreStrictBothWays) {
  const ShardReader reader(test::save_sample(folder_.path(), 1, 2));
  std::vector<UnitSpec> units = test::sample_units();
  units[0].tensors[1].name = "other";
  EXPECT_THAT(message_of<CheckpointError>([&] { reader.check_units(units); }),
              AllOf(HasSubstr("it lacks other"), HasSubstr("it holds scalar, which the model does not have")));
  units = test::sample_units();
  units[1].tensors[1].shape = {3, 13};
  EXPECT_THAT(message_of<CheckpointError>([&] { reader.check_units(units); }),
              HasSubstr("embed.weight has shape [13, 3] there and [3, 13] in this model"));
  units = test::sample_units();
  units[1].tensors[1].aliases.clear();
  EXPECT_THAT(message_of<CheckpointError>([&] { reader.check_units(units); }), HasSubstr("lm_head.weight"));
  units[1].tensors.push_back({"lm_head.weight", {13, 3}, true, {}});
  EXPECT_THAT(message_of<CheckpointError>([&] { reader.check_units(units); }), HasSubstr("tied differently"));
}

TEST_F(Shards, FindAFlippedBitInAnyDataset) {
  const auto saved = test::save_sample(folder_.path(), 1, 2);
  ShardReader(saved).verify_all();
  for (const char* name : {"param", "exp_avg", "exp_avg_sq", "ema"}) {
    std::uint64_t offset = 0;
    {
      const hdf5::File file = hdf5::File::open_read_only(saved / "rank_00001.h5");
      const hdf5::Group group = file.open_group("layers.0");
      offset = group.open_dataset(name).file_offset().value() + 41;
    }
    test::flip_byte(saved / "rank_00001.h5", offset);
    ShardReader reader(saved);
    EXPECT_THAT(message_of<CheckpointError>([&] { reader.verify_files(1, 1); }),
                AllOf(HasSubstr("rank_00001.h5:/layers.0/" + std::string(name)), HasSubstr("checksum")));
    reader.verify_files(0, 1);
    test::flip_byte(saved / "rank_00001.h5", offset);
  }
  test::flip_byte(saved / "model" / "tokenizer.json", 3);
  EXPECT_THAT(message_of<CheckpointError>([&] { ShardReader(saved).verify_all(); }), HasSubstr("tokenizer.json"));
}

TEST_F(Shards, NeverCrashOnADamagedFile) {
  const auto saved = test::save_sample(folder_.path(), 1, 2);
  const auto path = saved / "rank_00000.h5";
  const std::uint64_t size = std::filesystem::file_size(path);
  for (std::uint64_t offset = 0; offset < size; offset += 17) {
    test::flip_byte(path, offset);
    try {
      ShardReader(saved).verify_all();  // padding between objects may change unnoticed; data may not
    } catch (const CheckpointError&) {
    }
    test::flip_byte(path, offset);
  }
  ShardReader(saved).verify_all();
}

TEST_F(Shards, RefuseAFileOfAnotherSizeOrNone) {
  const auto saved = test::save_sample(folder_.path(), 1, 2);
  std::filesystem::resize_file(saved / "rank_00000.h5", 4000);
  EXPECT_THAT(message_of<CheckpointError>([&] { ShardReader(saved).verify_all(); }), HasSubstr("has 4000 bytes"));
  std::filesystem::remove(saved / "rank_00000.h5");
  EXPECT_THAT(message_of<CheckpointError>([&] { ShardReader(saved).verify_all(); }), HasSubstr("No such file"));
  std::vector<float> value(1);
  EXPECT_THAT(
      message_of<CheckpointError>([&] { ShardReader(saved).read_tensor("scalar", 0, StateKind::param, value); }),
      HasSubstr("rank_00000.h5"));
}

TEST_F(Shards, KeepFrozenParametersWithoutMoments) {
  const UnitSpec unit{"frozen", {{"w", {3}, true, {}}}};
  const std::vector<float> values{1, 2, 3};
  const ShardSlice slice{0, {0, 3}, values, {}, {}, {}};
  Manifest manifest = test::sample_manifest(1);
  manifest.units = {unit};
  manifest.files = {write_shard_file(folder_.path(), 0, manifest.units, std::span(&slice, 1))};
  EXPECT_FALSE(manifest.files[0].slices[0].moments);
  std::ofstream(folder_ / Manifest::file_name) << to_json(manifest);
  ShardReader reader(folder_.path());
  reader.verify_all();
  EXPECT_FALSE(reader.has(StateKind::exp_avg));
  std::vector<float> read(3);
  reader.read_tensor("w", 0, StateKind::param, read);
  EXPECT_EQ(read, values);
  EXPECT_THAT(message_of<CheckpointError>([&] { reader.read_tensor("w", 0, StateKind::exp_avg, read); }),
              HasSubstr("without that state"));
}

TEST_F(Shards, KeepOneMomentWithoutTheOther) {
  const UnitSpec unit{"one", {{"w", {3}, true, {}}}};
  const std::vector<float> values{1, 2, 3}, momentum{4, 5, 6};
  const ShardSlice slice{0, {0, 3}, values, momentum, {}, {}};
  Manifest manifest = test::sample_manifest(1);
  manifest.optimizer = "lion";
  manifest.units = {unit};
  manifest.files = {write_shard_file(folder_.path(), 0, manifest.units, std::span(&slice, 1))};
  std::ofstream(folder_ / Manifest::file_name) << to_json(manifest);
  ShardReader reader(folder_.path());
  reader.verify_all();
  EXPECT_EQ(reader.manifest().optimizer, "lion");
  EXPECT_EQ(reader.manifest().files, manifest.files);
  EXPECT_TRUE(reader.has(StateKind::exp_avg));
  EXPECT_FALSE(reader.has(StateKind::exp_avg_sq));
  std::vector<float> read(3);
  reader.read_tensor("w", 0, StateKind::exp_avg, read);
  EXPECT_EQ(read, momentum);
}

// Muon's: some tensors have no second moment. Ranks whose part holds none of the others have empty datasets.
TEST_F(Shards, SecondMomentsOfSomeTensorsReadBackAnywhere) {
  const test::SampleModel model{.no_exp_avg_sq = {"matrix", "two", "embed.weight"}};
  for (const std::int64_t writers : {1, 4, 7}) {
    ShardReader reader(test::save_sample(folder_.path(), writers, writers, 0, model));
    reader.verify_all();
    EXPECT_TRUE(reader.has(StateKind::exp_avg_sq));
    EXPECT_FALSE(reader.keeps("lm_head.weight", StateKind::exp_avg_sq));
    EXPECT_TRUE(reader.keeps("lm_head.weight", StateKind::exp_avg));
    for (const std::int64_t readers : {1, 3, 8}) {
      for (const UnitSpec& unit : test::sample_units()) {
        const FlatLayout layout(unit, readers, 1);
        for (std::int64_t block = 0; block < readers; ++block) {
          for (const Span& span : layout.spans(layout.block_range(block))) {
            const std::string& name = unit.tensors[span.tensor].name;
            const FlatRange part{span.flat_offset, span.flat_offset + span.length};
            std::vector<float> values(static_cast<std::size_t>(span.length));
            if (reader.keeps(name, StateKind::exp_avg_sq)) {
              reader.read(layout, part, StateKind::exp_avg_sq, values);
              ASSERT_TRUE(same_bits(values, test::sample_values(layout, part, StateKind::exp_avg_sq))) << name;
            } else {
              EXPECT_THAT(
                  message_of<CheckpointError>([&] { reader.read(layout, part, StateKind::exp_avg_sq, values); }),
                  HasSubstr("cannot read exp_avg_sq of " + name));
            }
          }
        }
      }
    }
    std::vector<std::string> exported;
    const CheckpointTensors tensors(reader, StateKind::exp_avg_sq);
    for (const TensorSpec& tensor : tensors.tensors()) exported.push_back(tensor.name);
    EXPECT_THAT(exported, testing::ElementsAre("empty", "scalar", "seven", "norm", "none"));
  }
}

TEST_F(Shards, KnowWhetherTheyHoldAveragedWeights) {
  EXPECT_TRUE(ShardReader(test::save_sample(folder_.path(), 1, 3)).has(StateKind::ema));
  const test::SampleModel plain{.averaged = false};
  ShardReader reader(test::save_sample(folder_.path(), 2, 3, 0, plain));
  reader.verify_all();
  EXPECT_FALSE(reader.has(StateKind::ema));
  EXPECT_THAT(message_of<CheckpointError>([&] { refuse_without_average(reader); }),
              HasSubstr("saved without them: optim.ema_decay was 0"));
}

TEST(FileShare, CoversEveryFileOnce) {
  for (const std::size_t files : {0u, 1u, 5u, 64u}) {
    for (const std::int64_t world : {1, 2, 3, 7, 100}) {
      std::size_t next = 0;
      for (std::int64_t rank = 0; rank < world; ++rank) {
        const FileShare share = file_share(files, rank, world);
        EXPECT_EQ(share.first, next);
        next += share.count;
      }
      EXPECT_EQ(next, files);
    }
  }
}

}  // namespace
}  // namespace lamina
