// Tensors streamed from any source into files, through blocks of fixed size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <lamina/checkpoint/tensor_source.hpp>
#include <lamina/tensor/dtype.hpp>

namespace lamina {

// One source of tensors and what to append to their names in the file ("" or ".exp_avg").
struct ExportPart {
  TensorSource* source = nullptr;
  std::string suffix;
};

struct ExportResult {
  std::size_t tensors = 0;
  std::size_t files = 0;
  std::uint64_t bytes = 0;              // of tensor data
  std::vector<std::string> not_finite;  // tensors that hold NaN or infinity
};

// FOLDER/STEM.safetensors (or several with an index). Throws CheckpointError.
[[nodiscard]] ExportResult export_safetensors(const std::filesystem::path& folder, const std::string& stem,
                                              const std::vector<ExportPart>& parts, DType dtype,
                                              std::uint64_t max_file_bytes);

// FOLDER/STEM.h5: one dataset a tensor, in its shape, with the attribute dtype; read back and compared. Throws
// CheckpointError.
[[nodiscard]] ExportResult export_hdf5(const std::filesystem::path& folder, const std::string& stem,
                                       const std::vector<ExportPart>& parts, DType dtype);

}  // namespace lamina
