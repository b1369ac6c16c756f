#include <algorithm>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/shard/flat_layout.hpp>

namespace lamina {

FlatLayout::FlatLayout(UnitSpec unit, std::int64_t shard_count, std::int64_t alignment)
    : unit_(std::move(unit)), shard_count_(shard_count) {
  require(shard_count >= 1 && alignment >= 1, "FlatLayout: shard_count and alignment are positive");
  for (const TensorSpec& tensor : unit_.tensors) {
    offsets_.push_back(elements_);
    elements_ += tensor.elements();
  }
  const std::int64_t granule = shard_count * alignment;
  block_elements_ = (elements_ + granule - 1) / granule * alignment;
}

FlatRange FlatLayout::block_range(std::int64_t block) const {
  require(block >= 0 && block < shard_count_, "FlatLayout: block inside the shard group");
  return {block * block_elements_, (block + 1) * block_elements_};
}

FlatRange FlatLayout::owned_range(std::int64_t block) const {
  const FlatRange whole = block_range(block);
  return {std::min(whole.begin, elements_), std::min(whole.end, elements_)};
}

std::vector<Span> FlatLayout::spans(FlatRange range) const {
  std::vector<Span> result;
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    const std::int64_t tensor_begin = offsets_[i];
    const std::int64_t begin = std::max(range.begin, tensor_begin);
    const std::int64_t end = std::min(range.end, tensor_begin + unit_.tensors[i].elements());
    if (begin < end) result.push_back({i, begin - tensor_begin, begin, end - begin});
  }
  return result;
}

}  // namespace lamina
