// Reads any part of a checkpoint from whichever shard files hold it: any world size reads any checkpoint.
//
// Tensors are matched by name and element offset, never by rank or block arithmetic, so the target may divide the model
// into other units, other blocks or another number of ranks. Data goes from the file straight into the caller's memory;
// verification uses one staging block of 4 MiB. Only the hyperslabs asked for are read. Not thread-safe. Throws
// CheckpointError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <lamina/checkpoint/manifest.hpp>
#include <lamina/checkpoint/tensor_source.hpp>
#include <lamina/shard/flat_layout.hpp>

namespace lamina {

class ShardReader {
 public:
  // Reads the manifest of a checkpoint folder (catalog.hpp).
  explicit ShardReader(std::filesystem::path folder);
  ~ShardReader();
  ShardReader(ShardReader&&) noexcept;
  ShardReader& operator=(ShardReader&&) noexcept;
  ShardReader(const ShardReader&) = delete;
  ShardReader& operator=(const ShardReader&) = delete;

  [[nodiscard]] const Manifest& manifest() const;
  [[nodiscard]] const std::filesystem::path& folder() const;

  // Strict both ways: every tensor of `units` is in the checkpoint with the same shape, and the checkpoint holds no
  // other. Names what differs.
  void check_units(std::span<const UnitSpec> units) const;
  // Whether the checkpoint holds that kind of state for every element that is to have it.
  [[nodiscard]] bool has(StateKind kind) const;
  // Whether the tensor of that name or alias is one of those: all are, but exp_avg_sq may be for some only.
  [[nodiscard]] bool keeps(const std::string& name, StateKind kind) const;

  // Fills `out` (range.length() floats) with the elements of `range` of the target's unit; padding becomes 0. Any block
  // count, any alignment.
  void read(const FlatLayout& target, FlatRange range, StateKind kind, std::span<float> out);
  // Elements [first, first + out.size()) of the tensor of that name or alias.
  void read_tensor(const std::string& name, std::int64_t first, StateKind kind, std::span<float> out);

  // Proves sizes and checksums of shard files [first, first + count) by streaming each of their datasets once, and of
  // the side files when `first` is 0. Ranks split the files between them with file_share.
  void verify_files(std::size_t first, std::size_t count);
  void verify_all();
  // Bytes of tensor data read so far.
  [[nodiscard]] std::uint64_t bytes_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The files that reader `rank` of `world` verifies: consecutive, all covered once, counts differing by at most one.
struct FileShare {
  std::size_t first = 0, count = 0;
};
[[nodiscard]] FileShare file_share(std::size_t files, std::int64_t rank, std::int64_t world);

// Throws CheckpointError when the checkpoint holds no averaged weights.
void refuse_without_average(const ShardReader& reader);

// One kind of state of a whole checkpoint, tensor by tensor, without tensors that have none. Keeps a reference to
// `reader`.
class CheckpointTensors : public TensorSource {
 public:
  CheckpointTensors(ShardReader& reader, StateKind kind);
  [[nodiscard]] const std::vector<TensorSpec>& tensors() const override { return tensors_; }
  void read(std::size_t index, std::int64_t first, std::span<float> out) override;

 private:
  ShardReader& reader_;
  StateKind kind_;
  std::vector<TensorSpec> tensors_;
};

}  // namespace lamina
