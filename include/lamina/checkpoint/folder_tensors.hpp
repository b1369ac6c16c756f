// The weights of a Hugging Face folder, tensor by tensor, as fp32.
#pragma once

#include <filesystem>
#include <vector>

#include <lamina/checkpoint/tensor_source.hpp>
#include <lamina/safetensors/reader.hpp>

namespace lamina {

// Buffers that older transformers versions saved beside the weights and that every program makes anew:
// rotary_emb.inv_freq (and cached tables), attn.bias, attn.masked_bias.
[[nodiscard]] bool is_known_buffer(std::string_view name);

// Every tensor but the known buffers, in the order of the files. Errors are DataErrors.
class FolderTensors : public TensorSource {
 public:
  explicit FolderTensors(const std::filesystem::path& folder, const std::string& stem = "model");
  [[nodiscard]] const std::vector<TensorSpec>& tensors() const override { return tensors_; }
  void read(std::size_t index, std::int64_t first, std::span<float> out) override;

  [[nodiscard]] const SafetensorsFolder& folder() const { return folder_; }
  [[nodiscard]] SafetensorsFolder::Place place(std::size_t index) const { return places_[index]; }

 private:
  SafetensorsFolder folder_;
  std::vector<TensorSpec> tensors_;
  std::vector<SafetensorsFolder::Place> places_;
};

}  // namespace lamina
