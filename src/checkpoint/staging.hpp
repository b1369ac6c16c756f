// Checksums of datasets through one bounded block, and the error type of this module.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <system_error>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/hdf5/dataset.hpp>

namespace lamina {

inline constexpr std::int64_t staging_floats = std::int64_t{1} << 20;  // 4 MiB

// XXH3-64 of a whole fp32 dataset; `staging` is grown to at most staging_floats and reused.
[[nodiscard]] std::uint64_t dataset_checksum(const hdf5::Dataset& dataset, std::vector<float>& staging);
// XXH3-64 of a whole file.
[[nodiscard]] std::uint64_t file_checksum(const std::filesystem::path& path);

// Runs `work`; what the HDF5 module or the file system reports becomes a CheckpointError about `path`.
void with_checkpoint_errors(const std::filesystem::path& path, const std::function<void()>& work);

}  // namespace lamina
