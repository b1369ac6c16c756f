// A small model whose every value is known, and checkpoints of it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/checkpoint/manifest.hpp>
#include <lamina/checkpoint/shard_writer.hpp>
#include <lamina/shard/flat_layout.hpp>

namespace lamina::test {

// Two units with tensors of 0, 1, 2, 7 and 1000 elements and more, one tied.
[[nodiscard]] std::vector<UnitSpec> sample_units();

// The value of one element: different for every tensor, element and kind; negative zero and tiny numbers included.
[[nodiscard]] float sample_value(const std::string& tensor, std::int64_t element, StateKind kind);

// The values of `range` of a unit (padding is 0). Of exp_avg_sq also for tensors that have none.
[[nodiscard]] std::vector<float> sample_values(const FlatLayout& layout, FlatRange range, StateKind kind);

// What a sample checkpoint is made of.
struct SampleModel {
  std::vector<UnitSpec> units = sample_units();
  std::string config_json = R"({"model_type": "llama", "torch_dtype": "bfloat16"})";
  bool averaged = true;  // holds averaged weights
  std::vector<std::string> no_exp_avg_sq = {};
};

// Everything but files and side files.
[[nodiscard]] Manifest sample_manifest(std::int64_t world, const SampleModel& model = {});

inline constexpr std::int64_t sample_alignment = 3;

// Writes the shard file of one rank of `world`.
ShardFileRecord write_sample_shard(const std::filesystem::path& folder, std::int64_t rank, std::int64_t world,
                                   const SampleModel& model = {});

// The run that save_sample speaks for.
inline constexpr const char* sample_run = "5a3-1";

// The newest checkpoint that looks complete; nothing if there is none.
[[nodiscard]] std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& run);
// What a user means by `path`.
[[nodiscard]] std::filesystem::path resolve_checkpoint(const std::filesystem::path& path);

// Saves a whole checkpoint as `world` ranks would; returns its folder.
std::filesystem::path save_sample(const std::filesystem::path& run, std::int64_t step, std::int64_t world,
                                  std::int64_t keep = 0, const SampleModel& model = {},
                                  const std::string& run_id = sample_run);

// What() of the error of type E that `work` throws; fails the comparison with a plain text otherwise.
template <typename E>
std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
  return "no exception";
}

// Changes one byte of a file.
void flip_byte(const std::filesystem::path& path, std::uint64_t offset);

}  // namespace lamina::test
