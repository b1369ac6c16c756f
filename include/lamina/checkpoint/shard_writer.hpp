// Writes one rank's part of a checkpoint to one HDF5 file, and proves that it is there.
//
// Layout of the file: one group per unit, named as the unit, with the datasets param, exp_avg, exp_avg_sq and ema
// (fp32, attribute "dtype"), `spans` (int64 triples: line in tensor_names, offset in the tensor, length) and
// `tensor_names` (text, one name a line). Attributes of the group: begin, end (flat coordinates). Where
// exp_avg_sq is kept for some of the tensors only, exp_avg_sq_spans are the triples of what it holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <lamina/checkpoint/manifest.hpp>

namespace lamina {

// At most one slice of each unit. The caller's memory, borrowed during the call. Each span has range.length() elements;
// exp_avg and exp_avg_sq may be empty where the optimizer has no such moment; exp_avg_sq only comes with exp_avg; ema
// may be empty where weights are not averaged. With `second` exp_avg_sq holds what that packs of the range. `range`
// holds no padding: FlatLayout::owned_range.
struct ShardSlice {
  std::size_t unit = 0;
  FlatRange range;
  std::span<const float> param, exp_avg, exp_avg_sq, ema;
  const PackedTensors* second = nullptr;
};

// "rank_00000.h5"
[[nodiscard]] std::string shard_file_name(std::int64_t rank);

// Writes every slice to FOLDER/rank_NNNNN.h5, closes, fsyncs, reopens, reads back and compares the checksums of what
// was given and what is there. Returns the record for the manifest. Throws CheckpointError naming the file and the
// reason (full disk, quota, I/O error, ...); what was written then stays behind in the temporary folder.
[[nodiscard]] ShardFileRecord write_shard_file(const std::filesystem::path& folder, std::int64_t rank,
                                               std::span<const UnitSpec> units, std::span<const ShardSlice> slices);

}  // namespace lamina
