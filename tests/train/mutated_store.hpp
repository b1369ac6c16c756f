// Weight stores that forward to the real one and do one thing differently.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include <lamina/shard/weight_store.hpp>

namespace lamina::test {

inline constexpr std::size_t most_gradient_slots = 3;  // of any StorePlan

class ForwardingStore : public WeightStore {
 public:
  explicit ForwardingStore(WeightStore& real) : real_(real) {}

  [[nodiscard]] std::size_t unit_count() const override { return real_.unit_count(); }
  [[nodiscard]] const FlatLayout& layout(std::size_t unit) const override { return real_.layout(unit); }
  void gather(std::size_t unit, std::size_t slot) override { real_.gather(unit, slot); }
  [[nodiscard]] std::span<const float> weights(std::size_t unit) override { return real_.weights(unit); }
  void release(std::size_t unit) override { real_.release(unit); }
  [[nodiscard]] UnitState state(std::size_t unit) const override { return real_.state(unit); }
  [[nodiscard]] std::span<float> gradient(std::size_t unit, std::size_t slot) override {
    return real_.gradient(unit, slot);
  }
  void reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override {
    real_.reduce(unit, slot, bucket, completes);
  }
  void accumulate(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override {
    real_.accumulate(unit, slot, bucket, completes);
  }
  void finish_gradient(std::size_t unit) override { real_.finish_gradient(unit); }
  void clear_gradients() override { real_.clear_gradients(); }
  [[nodiscard]] OptimizerShard optimizer_shard(std::size_t unit) override { return real_.optimizer_shard(unit); }
  void publish(std::size_t unit) override { real_.publish(unit); }
  [[nodiscard]] int optimizer_rank() const override { return real_.optimizer_rank(); }
  [[nodiscard]] std::vector<FlatRange> optimizer_ranges(std::size_t unit) const override {
    return real_.optimizer_ranges(unit);
  }
  void exchange(std::span<const FloatSend> sends, std::span<const FloatReceive> receives) override {
    real_.exchange(sends, receives);
  }
  [[nodiscard]] FlatRange counted_range(std::size_t unit) const override { return real_.counted_range(unit); }
  [[nodiscard]] const StoreCounters& counters() const override { return real_.counters(); }
  [[nodiscard]] const CollectiveOrder& collective_order() const override { return real_.collective_order(); }
  void clear_collective_order() override { real_.clear_collective_order(); }
  void interrupt() override { real_.interrupt(); }

 protected:
  [[nodiscard]] WeightStore& real() const { return real_; }

 private:
  WeightStore& real_;
};

// Where in a run a gradient is: steps from 1, micro-steps from 0.
struct GradientPlace {
  std::size_t unit = 0;
  std::int64_t step = 0, micro_step = 0;
};

// Changes gradients on their way into the sums, and the sums.
class GradientEditor : public ForwardingStore {
 public:
  struct Edits {
    std::function<void(const GradientPlace&, std::span<float> bucket)> bucket = {};  // before it is reduced or added
    // Before the first and after the last bucket of a unit in a micro-step.
    std::function<void(const GradientPlace&, const OptimizerShard&)> before_unit = {}, after_unit = {};
  };
  GradientEditor(WeightStore& real, Edits edits);

  [[nodiscard]] std::span<float> gradient(std::size_t unit, std::size_t slot) override;
  void reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override;
  void accumulate(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override;
  void clear_gradients() override;

 private:
  void edit(std::size_t unit, std::size_t slot, FlatRange bucket);
  void end_bucket(std::size_t unit, bool completes);

  Edits edits_;
  std::vector<std::span<float>> slots_;
  std::vector<std::int64_t> micro_steps_;  // by unit: completed in this step
  std::vector<bool> begun_;                // by unit: in this micro-step
  std::int64_t step_ = 0;
};

// Sums a rank's own gradients and tells nobody.
class SilentStore final : public ForwardingStore {
 public:
  explicit SilentStore(WeightStore& real) : ForwardingStore(real), slots_(most_gradient_slots) {}

  [[nodiscard]] std::span<float> gradient(std::size_t unit, std::size_t slot) override;
  void reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override;
  void finish_gradient(std::size_t) override {}

 private:
  std::vector<std::vector<float>> slots_;
};

// Other answers to which elements this rank stands for.
class CountingStore final : public ForwardingStore {
 public:
  using Count = std::function<FlatRange(WeightStore& real, std::size_t unit)>;
  CountingStore(WeightStore& real, Count count) : ForwardingStore(real), count_(std::move(count)) {}
  [[nodiscard]] FlatRange counted_range(std::size_t unit) const override { return count_(real(), unit); }

 private:
  Count count_;
};

// Lets a computation begin to write a gradient only some time after its slot is taken, and a reduction begin only when
// its unit's slot is: what does not wait for the end of the backward reads what was there before.
class LateWriter final : public ForwardingStore {
 public:
  explicit LateWriter(WeightStore& real) : ForwardingStore(real), taken_(real.unit_count(), false) {}
  [[nodiscard]] std::span<float> gradient(std::size_t unit, std::size_t slot) override;
  void reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> taken_;
};

// Gradients are computed into `buffers` buffers of its own, taken in turn by slot, and copied when they are reduced,
// which happens late. As many buffers as slots change nothing.
class StagingStore final : public ForwardingStore {
 public:
  StagingStore(WeightStore& real, std::size_t buffers)
      : ForwardingStore(real), buffers_(buffers), slots_(most_gradient_slots) {}
  [[nodiscard]] std::span<float> gradient(std::size_t unit, std::size_t slot) override;
  void reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override;

 private:
  std::vector<std::vector<float>> buffers_;
  std::vector<std::span<float>> slots_;
};

// Hands every gradient slot to somebody else as soon as this rank has read it.
class SlotScribbler final : public ForwardingStore {
 public:
  explicit SlotScribbler(WeightStore& real) : ForwardingStore(real), slots_(most_gradient_slots) {}
  [[nodiscard]] std::span<float> gradient(std::size_t unit, std::size_t slot) override;
  void reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) override;

 private:
  std::vector<std::span<float>> slots_;
};

// Publishes units otherwise: `publishes` is called instead.
class PublishingStore final : public ForwardingStore {
 public:
  using Publish = std::function<void(WeightStore& real, std::size_t unit)>;
  PublishingStore(WeightStore& real, Publish publishes) : ForwardingStore(real), publishes_(std::move(publishes)) {}
  void publish(std::size_t unit) override { publishes_(real(), unit); }

 private:
  Publish publishes_;
};

// Keeps a unit full from its first gather on; with `copies`, hands out a copy of that content for ever.
class HoardingStore final : public ForwardingStore {
 public:
  HoardingStore(WeightStore& real, std::size_t unit, bool copies)
      : ForwardingStore(real), unit_(unit), copies_(copies) {}
  void gather(std::size_t unit, std::size_t slot) override;
  [[nodiscard]] std::span<const float> weights(std::size_t unit) override;
  void release(std::size_t unit) override;

 private:
  std::size_t unit_;
  bool copies_, held_ = false;
  std::vector<float> copy_;
};

}  // namespace lamina::test
