#include <algorithm>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/shard/packed_tensors.hpp>

namespace lamina {

PackedTensors::PackedTensors(const UnitSpec& unit, std::vector<bool> kept) {
  require(kept.size() == unit.tensors.size(), "PackedTensors: kept or not, for every tensor");
  if (std::ranges::all_of(kept, [](bool k) { return k; })) return;
  kept_ = std::move(kept);
  std::int64_t offset = 0;
  for (const TensorSpec& tensor : unit.tensors) {
    begins_.push_back(offset);
    sizes_.push_back(tensor.elements());
    offset += sizes_.back();
  }
}

std::int64_t PackedTensors::before(std::int64_t flat_offset) const {
  if (whole()) return flat_offset;
  std::int64_t count = 0;
  for (std::size_t tensor = 0; tensor < kept_.size() && begins_[tensor] < flat_offset; ++tensor) {
    if (kept_[tensor]) count += std::min(sizes_[tensor], flat_offset - begins_[tensor]);
  }
  return count;
}

}  // namespace lamina
