#include "train/mutated_store.hpp"

#include <algorithm>
#include <thread>

namespace lamina::test {

namespace {

std::span<float> cut(std::span<float> whole, FlatRange range) {
  // Buckets reach into the padding, which gradient() does not show.
  const auto size = static_cast<std::int64_t>(whole.size());
  const std::int64_t begin = std::min(range.begin, size), end = std::min(range.end, size);
  return whole.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

}  // namespace

GradientEditor::GradientEditor(WeightStore& real_store, Edits edits)
    : ForwardingStore(real_store),
      edits_(std::move(edits)),
      slots_(most_gradient_slots),
      micro_steps_(real_store.unit_count()),
      begun_(real_store.unit_count()) {}

std::span<float> GradientEditor::gradient(std::size_t unit, std::size_t slot) {
  return slots_[slot] = real().gradient(unit, slot);
}

void GradientEditor::edit(std::size_t unit, std::size_t slot, FlatRange bucket) {
  const GradientPlace place{unit, step_, micro_steps_[unit]};
  if (!begun_[unit] && edits_.before_unit) edits_.before_unit(place, real().optimizer_shard(unit));
  begun_[unit] = true;
  if (edits_.bucket) edits_.bucket(place, cut(slots_[slot], bucket));
}

void GradientEditor::end_bucket(std::size_t unit, bool completes) {
  if (!completes) return;
  if (edits_.after_unit) edits_.after_unit({unit, step_, micro_steps_[unit]}, real().optimizer_shard(unit));
  ++micro_steps_[unit];
  begun_[unit] = false;
}

void GradientEditor::reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) {
  edit(unit, slot, bucket);
  real().reduce(unit, slot, bucket, completes);
  end_bucket(unit, completes);
}

void GradientEditor::accumulate(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) {
  edit(unit, slot, bucket);
  real().accumulate(unit, slot, bucket, completes);
  end_bucket(unit, completes);
}

void GradientEditor::clear_gradients() {
  real().clear_gradients();
  std::ranges::fill(micro_steps_, 0);
  ++step_;
}

std::span<float> SilentStore::gradient(std::size_t unit, std::size_t slot) {
  slots_[slot].resize(static_cast<std::size_t>(layout(unit).padded_elements()));
  return std::span(slots_[slot]).first(static_cast<std::size_t>(layout(unit).elements()));
}

void SilentStore::reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool) {
  const OptimizerShard shard = optimizer_shard(unit);
  const std::int64_t end = std::min({bucket.end, shard.range.end, layout(unit).elements()});
  for (std::int64_t i = std::max(bucket.begin, shard.range.begin); i < end; ++i)
    shard.grad[static_cast<std::size_t>(i - shard.range.begin)] += slots_[slot][static_cast<std::size_t>(i)];
}

std::span<float> LateWriter::gradient(std::size_t unit, std::size_t slot) {
  const std::span<float> gradient = real().gradient(unit, slot);
  {
    const std::lock_guard lock(mutex_);
    taken_[unit] = true;
  }
  changed_.notify_all();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return gradient;
}

void LateWriter::reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(500), [&] { return taken_[unit]; });
  }
  real().reduce(unit, slot, bucket, completes);
  const std::lock_guard lock(mutex_);
  if (completes) taken_[unit] = false;
}

std::span<float> StagingStore::gradient(std::size_t unit, std::size_t slot) {
  slots_[slot] = real().gradient(unit, slot);
  std::vector<float>& buffer = buffers_[slot % buffers_.size()];
  if (buffer.empty()) buffer.resize(64 * 1024);  // more than any unit here: a buffer must not move
  return std::span(buffer).first(slots_[slot].size());
}

void StagingStore::reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) {
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  const std::span<float> buffer = std::span(buffers_[slot % buffers_.size()]).first(slots_[slot].size());
  std::ranges::copy(cut(buffer, bucket), cut(slots_[slot], bucket).begin());
  real().reduce(unit, slot, bucket, completes);
}

std::span<float> SlotScribbler::gradient(std::size_t unit, std::size_t slot) {
  return slots_[slot] = real().gradient(unit, slot);
}

void SlotScribbler::reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) {
  real().reduce(unit, slot, bucket, completes);
  if (completes) std::ranges::fill(slots_[slot], 7.0F);
}

void HoardingStore::gather(std::size_t unit, std::size_t slot) {
  if (unit != unit_ || !held_ || copies_) real().gather(unit, slot);
  held_ = held_ || unit == unit_;
}

std::span<const float> HoardingStore::weights(std::size_t unit) {
  const std::span<const float> weights = real().weights(unit);
  if (unit != unit_ || !copies_) return weights;
  if (copy_.empty()) copy_.assign(weights.begin(), weights.end());
  return copy_;
}

void HoardingStore::release(std::size_t unit) {
  if (unit != unit_ || copies_) real().release(unit);
}

}  // namespace lamina::test
