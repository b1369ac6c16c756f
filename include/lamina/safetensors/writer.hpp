// Writes tensors to safetensors files piece by piece, so that no tensor need be in memory.
//
// The tensors are declared ahead and then given in that order as one stream of floats, converted to each tensor's dtype
// (round to nearest even). A file is written under a temporary name, fsynced, read back and compared by checksum, then
// renamed: it is there whole or not at all. Errors carry the ExitCode given.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/base/hash.hpp>
#include <lamina/safetensors/header.hpp>

namespace lamina {

struct TensorToWrite {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] std::uint64_t bytes() const;
};

class SafetensorsFileWriter {
 public:
  SafetensorsFileWriter(std::filesystem::path path, std::vector<TensorToWrite> tensors, ExitCode code);
  // Removes the temporary file unless finished.
  ~SafetensorsFileWriter();
  SafetensorsFileWriter(const SafetensorsFileWriter&) = delete;
  SafetensorsFileWriter& operator=(const SafetensorsFileWriter&) = delete;

  // The next elements; a piece may end in one tensor and begin in another.
  void write(std::span<const float> values);
  // Elements still to be written.
  [[nodiscard]] std::int64_t missing() const { return missing_; }
  // All elements must have been given (InternalError otherwise).
  void finish();

 private:
  void put(const void* bytes, std::size_t count);
  void compare() const;
  [[nodiscard]] Error failure(int error_number) const;

  std::filesystem::path path_, temporary_;
  std::vector<TensorToWrite> tensors_;
  ExitCode code_;
  int descriptor_ = -1;
  std::size_t tensor_ = 0;    // being written
  std::int64_t element_ = 0;  // next, in that tensor
  std::int64_t missing_ = 0;
  Xxh3Stream checksum_;
  std::vector<std::byte> staging_;
};

// A folder of files STEM.safetensors, or STEM-00001-of-0000N.safetensors with STEM.safetensors.index.json when the
// tensors take more than `max_file_bytes` together: files are filled in order, and a tensor larger than the limit gets
// a file of its own (as save_pretrained does).
class SafetensorsFolderWriter {
 public:
  // The folder exists. max_file_bytes >= 1.
  SafetensorsFolderWriter(std::filesystem::path folder, std::string stem, std::vector<TensorToWrite> tensors,
                          std::uint64_t max_file_bytes, ExitCode code);
  ~SafetensorsFolderWriter();

  void write(std::span<const float> values);
  void finish();
  [[nodiscard]] std::size_t file_count() const { return parts_.size(); }

 private:
  [[nodiscard]] std::string file_name(std::size_t part) const;
  void next_file();
  void write_index() const;

  std::filesystem::path folder_;
  std::string stem_;
  ExitCode code_;
  std::vector<std::vector<TensorToWrite>> parts_;
  std::size_t part_ = 0;
  std::unique_ptr<SafetensorsFileWriter> current_;
};

}  // namespace lamina
