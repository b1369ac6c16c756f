// The order in which units are gathered and used, on a store that only records.
#include <string>

#include <lamina/train/gather_pipeline.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

class RecordingStore final : public WeightStore {
 public:
  RecordingStore(std::size_t units, int prefetch, bool keeps_full = false)
      : states_(units, UnitState::sharded), prefetch_(prefetch), keeps_full_(keeps_full) {}
  [[nodiscard]] std::size_t unit_count() const override { return states_.size(); }
  [[nodiscard]] const FlatLayout& layout(std::size_t) const override { return layout_; }
  void gather(std::size_t unit) override {
    EXPECT_EQ(states_[unit], UnitState::sharded);
    states_[unit] = UnitState::gathering;
    held_ += 1;
    if (!keeps_full_) {
      EXPECT_LE(held_, prefetch_ + 1);
    }
    events += "g" + std::to_string(unit) + " ";
  }
  [[nodiscard]] std::span<const float> get(std::size_t unit) override {
    EXPECT_NE(states_[unit], UnitState::sharded);
    states_[unit] = UnitState::full;
    events += "u" + std::to_string(unit) + " ";
    return {};
  }
  void release(std::size_t unit) override {
    states_[unit] = UnitState::sharded;
    held_ -= 1;
    events += "r" + std::to_string(unit) + " ";
  }
  [[nodiscard]] UnitState state(std::size_t unit) const override { return states_[unit]; }
  [[nodiscard]] int prefetch() const override { return prefetch_; }
  [[nodiscard]] std::span<float> gradient(std::size_t) override { return {}; }
  void reduce(std::size_t) override {}
  void finish_gradients() override {}
  void clear_gradients() override {}
  [[nodiscard]] OptimizerShard optimizer_shard(std::size_t) override { return {}; }
  void publish(std::size_t) override {}
  [[nodiscard]] int optimizer_rank() const override { return 0; }
  [[nodiscard]] std::vector<FlatRange> optimizer_ranges(std::size_t) const override { return {}; }
  void exchange(std::span<const FloatSend>, std::span<const FloatReceive>) override {}
  [[nodiscard]] bool keeps_full() const override { return keeps_full_; }
  [[nodiscard]] FlatRange counted_range(std::size_t) const override { return {}; }
  [[nodiscard]] const StoreCounters& counters() const override { return counters_; }
  [[nodiscard]] const CollectiveOrder& collective_order() const override { return order_; }

  std::string events;

 private:
  std::vector<UnitState> states_;
  int prefetch_;
  bool keeps_full_;
  int held_ = 0;
  FlatLayout layout_{UnitSpec{}, 1};
  StoreCounters counters_;
  CollectiveOrder order_;
};

std::string events_of(int prefetch, std::vector<std::size_t> uses, bool keeps_full = false) {
  RecordingStore store(4, prefetch, keeps_full);
  const std::size_t count = uses.size();
  GatherPipeline pipeline(store, std::move(uses));
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<void>(pipeline.acquire());
    pipeline.release();
  }
  EXPECT_TRUE(pipeline.done());
  return store.events;
}

TEST(GatherPipeline, WithoutPrefetchOneUnitAtATime) {
  EXPECT_EQ(events_of(0, {0, 1, 2}), "g0 u0 r0 g1 u1 r1 g2 u2 r2 ");
}

TEST(GatherPipeline, GathersTheNextBeforeItUsesThisOne) {
  EXPECT_EQ(events_of(1, {0, 1, 2}), "g0 g1 u0 r0 g2 u1 r1 u2 r2 ");
}

TEST(GatherPipeline, AUnitInUseIsNotGatheredAheadAgain) {
  EXPECT_EQ(events_of(2, {0, 1, 0}), "g0 g1 u0 r0 g0 u1 r1 u0 r0 ");
  EXPECT_EQ(events_of(3, {0, 1, 2, 1, 0}), "g0 g1 g2 u0 r0 u1 r1 g1 g0 u2 r2 u1 r1 u0 r0 ");
}

TEST(GatherPipeline, UnitsThatStayFullAreGatheredOnceAndReleasedAfterTheirLastUse) {
  EXPECT_EQ(events_of(1, {0, 1, 2, 1, 0}, true), "g0 g1 u0 g2 u1 u2 r2 u1 r1 u0 r0 ");
  EXPECT_EQ(events_of(0, {0, 1, 0}, true), "g0 u0 g1 u1 r1 u0 r0 ");
}

TEST(GatherPipeline, MisuseThrows) {
  RecordingStore store(2, 1);
  GatherPipeline pipeline(store, {0});
  static_cast<void>(pipeline.acquire());
  pipeline.release();
  EXPECT_ANY_THROW(static_cast<void>(pipeline.acquire()));
}

}  // namespace
}  // namespace lamina
