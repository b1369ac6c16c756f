#include <algorithm>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/train/gather_pipeline.hpp>

namespace lamina {

GatherPipeline::GatherPipeline(WeightStore& store, std::vector<std::size_t> uses)
    : store_(store), uses_(std::move(uses)) {}

std::span<const float> GatherPipeline::acquire() {
  require(!done(), "GatherPipeline: more uses than planned");
  const std::size_t ahead = std::min(uses_.size(), current_ + 1 + static_cast<std::size_t>(store_.prefetch()));
  for (; gathered_ < ahead; ++gathered_) {
    if (store_.state(uses_[gathered_]) == UnitState::sharded) {
      store_.gather(uses_[gathered_]);
    } else if (!store_.keeps_full()) {
      break;  // still in use: gathered again once it is released
    }
  }
  require(gathered_ > current_, "GatherPipeline: a unit is acquired before its last use was released");
  return store_.get(uses_[current_]);
}

void GatherPipeline::release() {
  const std::size_t unit = uses_[current_++];
  const bool used_later =
      std::find(uses_.begin() + static_cast<std::ptrdiff_t>(current_), uses_.end(), unit) != uses_.end();
  if (!store_.keeps_full() || !used_later) store_.release(unit);
}

}  // namespace lamina
