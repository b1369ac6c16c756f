// The contract of a weight store, for both kinds: state, versions, misuse, gradients with odd unit sizes.
#include <algorithm>
#include <chrono>
#include <memory>
#include <tuple>

#include <lamina/backends/backend.hpp>
#include <lamina/comm/fabric_set.hpp>
#include <lamina/shard/weight_store.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

const mpi::Communicator& world() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(60));
  return comm;
}

std::vector<UnitSpec> odd_units() {
  const auto tensor = [](const char* name, std::vector<std::int64_t> shape) {
    return TensorSpec{name, std::move(shape), true, {}};
  };
  return {{"a", {tensor("a.one", {1}), tensor("a.none", {0}), tensor("a.two", {2})}},
          {"b", {tensor("b.seven", {7}), tensor("b.thousand", {10, 100})}},
          {"c", {tensor("c.big", {3000})}}};
}

class WeightStoreTest : public testing::TestWithParam<std::tuple<Strategy, SumOrder>> {
 protected:
  WeightStoreTest() {
    const std::vector<int> nodes(static_cast<std::size_t>(world().size()), 0);
    const Topology topology(world().rank(), nodes,
                            std::vector<std::string>(nodes.size(), mpi::Communicator::host_name()));
    backend_ = make_backend("cpu", 1);
    ParallelSection parallel;
    const auto [strategy, order] = GetParam();
    parallel.strategy = strategy;
    const bool hybrid = strategy == Strategy::hybrid || strategy == Strategy::hybrid_optimizer;
    if (hybrid) parallel.shard_size = world().size() % 2 == 0 ? 2 : 1;  // replica groups of 2 where there are 4 ranks
    const StorePlan plan = make_store_plan(parallel, {odd_units()}, topology, order);
    fabrics_ = std::make_unique<FabricSet>("mpi", world(), Mesh(topology, plan.shard_size), order);
    store_ = make_weight_store(plan, *backend_.device, *fabrics_);
    finishes_ = exchanges_once_a_step(plan, fabrics_->mesh());
  }

  // Element i of unit u becomes a number that tells which it is.
  void fill(float add) {
    for (std::size_t unit = 0; unit < store_->unit_count(); ++unit) {
      const OptimizerShard shard = store_->optimizer_shard(unit);
      for (std::int64_t i = shard.range.begin; i < std::min(shard.range.end, store_->layout(unit).elements()); ++i) {
        shard.param[static_cast<std::size_t>(i - shard.range.begin)] =
            static_cast<float>(10000 * unit) + static_cast<float>(i) + add;
      }
      store_->publish(unit);
    }
  }

  void expect_full(float add) {
    for (std::size_t unit = 0; unit < store_->unit_count(); ++unit) {
      store_->gather(unit, unit % 2);
      const std::span<const float> full = store_->weights(unit);
      EXPECT_EQ(store_->state(unit), UnitState::full);
      ASSERT_EQ(static_cast<std::int64_t>(full.size()), store_->layout(unit).elements());
      for (std::size_t i = 0; i < full.size(); ++i)
        ASSERT_EQ(full[i], static_cast<float>(10000 * unit) + static_cast<float>(i) + add);
      store_->release(unit);
      EXPECT_EQ(store_->state(unit), UnitState::sharded);
    }
  }

  Backend backend_;
  std::unique_ptr<FabricSet> fabrics_;
  std::unique_ptr<WeightStore> store_;
  bool finishes_ = false;
};

TEST_P(WeightStoreTest, GathersWhatTheShardsHold) {
  fill(0);
  expect_full(0);
  fill(0.5F);  // a new version
  expect_full(0.5F);
}

TEST_P(WeightStoreTest, MisuseThrows) {
  fill(0);
  EXPECT_ANY_THROW(static_cast<void>(store_->weights(0)));
  EXPECT_ANY_THROW(store_->release(0));
  EXPECT_ANY_THROW(store_->reduce(0, 0, {0, 1}, true));
  EXPECT_ANY_THROW(store_->accumulate(0, 0, {0, 1}, true));
  store_->gather(0, 0);
  EXPECT_ANY_THROW(store_->gather(0, 0));
  EXPECT_ANY_THROW(store_->gather(0, 1));
  static_cast<void>(store_->weights(0));
  store_->release(0);
  EXPECT_ANY_THROW(store_->release(0));
}

TEST_P(WeightStoreTest, AUnitGatheredBeforeItsLastUpdateIsRefused) {
  fill(0);
  store_->gather(1, 0);
  store_->publish(1);
  EXPECT_ANY_THROW(static_cast<void>(store_->weights(1)));
}

// Constant gradients, one value a unit: they come back unmixed, summed over ranks and micro-steps.
TEST_P(WeightStoreTest, GradientsOfEachUnitComeBackUnmixed) {
  store_->clear_gradients();
  for (int micro = 0; micro < 3; ++micro) {
    for (std::size_t unit = store_->unit_count(); unit-- > 0;) {
      const std::span<float> gradient = store_->gradient(unit, unit % 2);
      EXPECT_EQ(gradient.data(), store_->gradient(unit, unit % 2).data());  // held until it is reduced
      std::fill(gradient.begin(), gradient.end(), static_cast<float>(unit + 1));
      // In two buckets, cut anywhere; the second time at once.
      const std::int64_t end = store_->layout(unit).padded_elements(), cut = micro == 1 ? 0 : end / 3 + 1;
      store_->reduce(unit, unit % 2, {cut, end}, cut == 0);
      if (cut > 0) store_->reduce(unit, unit % 2, {0, cut}, true);
    }
  }
  for (std::size_t unit = 0; finishes_ && unit < store_->unit_count(); ++unit) store_->finish_gradient(unit);
  for (std::size_t unit = 0; unit < store_->unit_count(); ++unit) {
    const OptimizerShard shard = store_->optimizer_shard(unit);
    for (std::int64_t i = shard.range.begin; i < shard.range.end; ++i) {
      const float expected = i < store_->layout(unit).elements()
                                 ? 3.0F * static_cast<float>((unit + 1) * static_cast<std::size_t>(world().size()))
                                 : 0.0F;
      ASSERT_EQ(shard.grad[static_cast<std::size_t>(i - shard.range.begin)], expected)
          << "unit " << unit << " element " << i;
    }
  }
  EXPECT_EQ(store_->counters().reductions, (std::vector<std::uint64_t>{3, 3, 3}));
}

TEST_P(WeightStoreTest, AllRanksTogetherCountEveryElementOnce) {
  for (std::size_t unit = 0; unit < store_->unit_count(); ++unit) {
    std::array<std::int64_t, 1> counted{store_->counted_range(unit).length()};
    world().sum(counted, "the counted elements");
    EXPECT_EQ(counted[0], store_->layout(unit).elements());
  }
}

// What the ranks of the optimizer's group update covers every unit once, and each knows its own part.
TEST_P(WeightStoreTest, TheOptimizersRanksCoverEveryUnit) {
  for (std::size_t unit = 0; unit < store_->unit_count(); ++unit) {
    std::vector<FlatRange> ranges = store_->optimizer_ranges(unit);
    EXPECT_EQ(ranges.at(static_cast<std::size_t>(store_->optimizer_rank())), store_->optimizer_shard(unit).range);
    std::ranges::sort(ranges, {}, &FlatRange::begin);
    std::int64_t next = 0;
    for (const FlatRange& range : ranges) {
      EXPECT_EQ(range.begin, next);
      next = range.end;
    }
    EXPECT_EQ(next, store_->layout(unit).padded_elements());
  }
}

// Each tells its neighbour in the group which part it updates.
TEST_P(WeightStoreTest, TheOptimizersRanksReachEachOther) {
  const auto group = static_cast<int>(store_->optimizer_ranges(0).size());
  const int me = store_->optimizer_rank(), next = (me + 1) % group, before = (me + group - 1) % group;
  const std::vector<float> mine{static_cast<float>(store_->optimizer_shard(2).range.begin)};
  std::vector<float> theirs = mine;
  if (group > 1) {
    const FloatSend send{next, mine};
    const FloatReceive receive{before, theirs};
    store_->exchange(std::span(&send, 1), std::span(&receive, 1));
  }
  EXPECT_EQ(theirs[0], static_cast<float>(store_->optimizer_ranges(2)[static_cast<std::size_t>(before)].begin));
}

TEST_P(WeightStoreTest, TwoGradientSlotsAndNoMore) {
  static_cast<void>(store_->gradient(0, 0));
  EXPECT_ANY_THROW(static_cast<void>(store_->gradient(1, 0)));
  static_cast<void>(store_->gradient(1, 1));
  EXPECT_ANY_THROW(static_cast<void>(store_->gradient(2, 2)));
  EXPECT_ANY_THROW(static_cast<void>(store_->gradient(0, 1)));  // another unit's
}

INSTANTIATE_TEST_SUITE_P(Strategies, WeightStoreTest,
                         testing::Combine(testing::Values(Strategy::no_shard, Strategy::shard_optimizer,
                                                          Strategy::shard_grad_op, Strategy::full, Strategy::hybrid,
                                                          Strategy::hybrid_optimizer),
                                          testing::Values(SumOrder::rank, SumOrder::hierarchical)),
                         [](const auto& kind) {
                           return std::string(name_of(std::get<0>(kind.param))) +
                                  (std::get<1>(kind.param) == SumOrder::rank ? "_rank" : "_hierarchical");
                         });

}  // namespace
}  // namespace lamina
