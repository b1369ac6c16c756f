#include <algorithm>
#include <array>

#include <lamina/checkpoint/folder_tensors.hpp>

namespace lamina {

bool is_known_buffer(std::string_view name) {
  static constexpr std::array<std::string_view, 5> ends = {"rotary_emb.inv_freq", "rotary_emb.cos_cached",
                                                           "rotary_emb.sin_cached", ".attn.bias", ".attn.masked_bias"};
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return name.ends_with(end); });
}

FolderTensors::FolderTensors(const std::filesystem::path& folder, const std::string& stem) : folder_(folder, stem) {
  for (const SafetensorsFolder::Place place : folder_.places()) {
    const SafetensorsEntry& entry = folder_.entry(place);
    if (is_known_buffer(entry.name)) continue;
    tensors_.push_back({entry.name, entry.shape, entry.shape.size() > 1, {}});
    places_.push_back(place);
  }
}

void FolderTensors::read(std::size_t index, std::int64_t first, std::span<float> out) {
  folder_.read(places_[index], first, out);
}

}  // namespace lamina
