// Fills slices of units from the safetensors of a Hugging Face folder; each rank reads only the bytes of its own
// slices.
//
// Strict both ways: every tensor of the model is in the folder with its shape, and the folder holds no other (buffers
// that older transformers versions saved are ignored by name, see is_known_buffer). A tied tensor may be stored under
// any of its names; stored under several, the values must be equal. Published names without the base model's prefix
// ("transformer.", "model.") are accepted. Weights that hold NaN or infinity are refused with the tensor's name. Throws
// DataError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include <lamina/shard/flat_layout.hpp>

namespace lamina {

class PretrainedReader {
 public:
  // Opens `folder` and checks names and shapes against `units`.
  PretrainedReader(const std::filesystem::path& folder, std::span<const UnitSpec> units);
  ~PretrainedReader();
  PretrainedReader(PretrainedReader&&) noexcept;
  PretrainedReader& operator=(PretrainedReader&&) noexcept;
  PretrainedReader(const PretrainedReader&) = delete;
  PretrainedReader& operator=(const PretrainedReader&) = delete;

  // Fills `out` (range.length() floats) with the elements of `range` of the target's unit; padding becomes 0.
  void read(const FlatLayout& target, FlatRange range, std::span<float> out);
  // Bytes of tensor data read so far (headers not counted).
  [[nodiscard]] std::uint64_t bytes_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lamina
