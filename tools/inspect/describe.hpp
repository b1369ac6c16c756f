// What a path holds, in words and tables for people. All functions return text that ends in a newline.
#pragma once

#include <filesystem>
#include <string>

#include <lamina/checkpoint/manifest.hpp>

namespace lamina {

// A checkpoint, a run folder, a folder with safetensors, a .safetensors file, or an HDF5 file. Throws DataError when
// `path` is none of them, and whatever reading it throws.
[[nodiscard]] std::string describe(const std::filesystem::path& path);

// Every group and dataset with element type, shape, bytes and attributes.
[[nodiscard]] std::string describe_hdf5(const std::filesystem::path& path);

// One line "<hex>  <name>" a tensor and last "<hex>  all", for a checkpoint (checksums proved first), a run folder, or
// a Hugging Face folder. `kind`: param or ema, which only a checkpoint has; throws CheckpointError or UsageError
// otherwise.
[[nodiscard]] std::string digest_text(const std::filesystem::path& path, StateKind kind);

}  // namespace lamina
