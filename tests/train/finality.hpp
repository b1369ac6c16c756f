// Watches whether a bucket of gradients is final when the backward says so: what is reduced must be what lay there when
// its part of the backward was told to be over.
#pragma once

#include "train/mutated_store.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <lamina/base/check.hpp>
#include <lamina/schedule/step_schedule.hpp>

namespace lamina::test {

class FinalityLog {
 public:
  explicit FinalityLog(std::vector<ScheduledUnit> units) : units_(std::move(units)), slots_(most_gradient_slots) {}

  void taken(std::size_t slot, std::span<float> gradient) {
    const std::lock_guard lock(mutex_);
    slots_[slot] = gradient;
  }
  // Of the compute stream, after a part of a backward and before anybody is told.
  void part_over(const Operation& backward) {
    const FlatRange range = bucket_range(units_[backward.unit], backward.first_bucket + backward.part);
    const std::lock_guard lock(mutex_);
    const std::span<float> bucket = part_of(slots_[backward.slot], range);
    told_[{backward.unit, range.begin}].assign(bucket.begin(), bucket.end());
  }
  void reducing(std::size_t unit, std::size_t slot, FlatRange range) {
    const std::lock_guard lock(mutex_);
    const auto told = told_.find({unit, range.begin});
    require(told != told_.end(), "a bucket is reduced before the backward says that it is final");
    const std::span<float> bucket = part_of(slots_[slot], range);
    require(std::ranges::equal(bucket, told->second), "a bucket was written after the backward said that it is final");
    told_.erase(told);
  }

 private:
  static std::span<float> part_of(std::span<float> gradient, FlatRange range) {
    const auto size = static_cast<std::int64_t>(gradient.size());
    const auto begin = std::min(range.begin, size), end = std::min(range.end, size);
    return gradient.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }

  std::vector<ScheduledUnit> units_;
  std::mutex mutex_;
  std::vector<std::span<float>> slots_;
  std::map<std::pair<std::size_t, std::int64_t>, std::vector<float>> told_;
};

class FinalityStore final : public ForwardingStore {
 public:
  FinalityStore(WeightStore& real_store, std::shared_ptr<FinalityLog> log)
      : ForwardingStore(real_store), log_(std::move(log)) {}
  [[nodiscard]] std::span<float> gradient(std::size_t unit, std::size_t slot) override {
    const std::span<float> gradient = real().gradient(unit, slot);
    log_->taken(slot, gradient);
    return gradient;
  }
  void reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override {
    // Time for whoever still writes.
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    log_->reducing(unit, slot, bucket);
    real().reduce(unit, slot, bucket, completes);
  }

 private:
  std::shared_ptr<FinalityLog> log_;
};

}  // namespace lamina::test
