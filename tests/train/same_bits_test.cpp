// Law 1: the same bits for every world size, strategy, prefetch depth, node layout. The one-rank oracle decides.
#include "train/oracle.hpp"
#include "train/training_world.hpp"

#include <chrono>
#include <cmath>
#include <map>
#include <tuple>

#include <lamina/train/step_plan.hpp>

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

const mpi::Communicator& world() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(120));
  return comm;
}

const RunRecord& oracle(const std::string& model, std::int64_t micro_batch) {
  static std::map<std::tuple<std::string, std::int64_t>, RunRecord> cache;
  const auto key = std::make_tuple(model, micro_batch);
  if (!cache.contains(key)) {
    RunConfig config = small_run();
    config.train.micro_batch = micro_batch;
    cache[key] = run_oracle(small_model(model), config, config.train.steps);
  }
  return cache[key];
}

// Pretended nodes that fit this world: 1xR, Rx1, 2x(R/2), round robin, and uneven ones.
std::vector<std::vector<int>> node_layouts() {
  const auto size = static_cast<std::size_t>(world().size());
  std::vector<std::vector<int>> layouts{std::vector<int>(size, 0)};
  if (size == 1) return layouts;
  std::vector<int> each, halves, turns, uneven;
  for (int rank = 0; rank < world().size(); ++rank) {
    each.push_back(rank);
    halves.push_back(2 * rank / world().size());
    turns.push_back(rank % 2);
    uneven.push_back(rank == 0 ? 0 : 1);
  }
  layouts.push_back(each);
  if (size > 2) layouts.insert(layouts.end(), {halves, turns, uneven});
  return layouts;
}

void expect_same(const RunRecord& run, const RunRecord& expected, const std::string& what) {
  EXPECT_EQ(run.losses, expected.losses) << what;
  EXPECT_EQ(run.norms, expected.norms) << what;
  EXPECT_EQ(run.validation, expected.validation) << what;
  EXPECT_TRUE(run.weights == expected.weights) << what << ": the final weights differ";
}

void check(const std::string& model, Strategy strategy, std::int64_t prefetch, std::int64_t micro_batch,
           const std::vector<int>& nodes) {
  RunConfig config = small_run();
  config.train.micro_batch = micro_batch;
  config.parallel.strategy = strategy;
  config.parallel.prefetch = prefetch;
  TrainingWorld training(world(), small_model(model), config, nodes);
  const RunRecord run = run_training(training, config.train.steps);
  expect_same(run, oracle(model, micro_batch),
              model + (strategy == Strategy::full ? " full" : " no_shard") + " prefetch " + std::to_string(prefetch) +
                  " micro_batch " + std::to_string(micro_batch) + " nodes " + testing::PrintToString(nodes));
}

TEST(SameBits, EveryStrategyPrefetchAndNodeLayout) {
  for (const std::string model : {"tied", "untied"}) {
    for (const auto& nodes : node_layouts()) {
      check(model, Strategy::no_shard, 1, 1, nodes);
      for (const std::int64_t prefetch : {0, 1, 2, 3}) check(model, Strategy::full, prefetch, 1, nodes);
    }
  }
}

TEST(SameBits, LargerMicroBatches) {
  if (12 % (2 * world().size()) != 0) GTEST_SKIP() << "micro_batch 2 does not divide the batch among these ranks";
  for (const auto& nodes : node_layouts()) {
    check("tied", Strategy::full, 1, 2, nodes);
    check("untied", Strategy::no_shard, 1, 2, nodes);
  }
}

TEST(SameBits, TheOracleLearnsAndTheLawIsNotVacuous) {
  const RunRecord& record = oracle("tied", 1);
  EXPECT_LT(record.losses.back(), record.losses.front());
  for (const double loss : record.losses) EXPECT_TRUE(std::isfinite(loss));
  EXPECT_NE(oracle("tied", 1).weights, oracle("tied", 2).weights);  // another micro-batch is another list of atoms
}

TEST(SameBits, HierarchicalOrderRepeatsItselfAndIsCloseToRankOrder) {
  RunConfig config = small_run();
  config.reduction.order = ReductionOrder::hierarchical;
  const auto nodes = node_layouts().back();
  TrainingWorld first(world(), small_model("tied"), config, nodes);
  const RunRecord once = run_training(first, 5);
  TrainingWorld second(world(), small_model("tied"), config, nodes);
  const RunRecord twice = run_training(second, 5);
  expect_same(twice, once, "hierarchical");
  for (std::size_t i = 0; i < once.losses.size(); ++i) EXPECT_NEAR(once.losses[i], oracle("tied", 1).losses[i], 1e-4);
}

TEST(Counters, OneGatherForwardOneBackwardOneReductionAndFewSlots) {
  for (const std::string model : {"tied", "untied"}) {
    for (const std::int64_t prefetch : {0, 1, 2, 3}) {
      RunConfig config = small_run();
      config.parallel.prefetch = prefetch;
      TrainingWorld training(world(), small_model(model), config);
      const TrainContext context = training.context();
      static_cast<void>(run_step(context, training.batches(), 1, 0, false));
      const auto micro_steps = static_cast<std::uint64_t>(12 / world().size());
      const StoreCounters& counters = training.store().counters();
      for (std::size_t unit = 0; unit < training.plan().units.size(); ++unit) {
        // Two stages read a tied head's unit; a block reads its own once more in backward.
        const Stage& stage = training.plan().stages[model == "tied" ? unit + 1 : unit];
        const std::uint64_t gathers =
            stage.kind == StageKind::block || (model == "tied" && stage.kind == StageKind::head) ? 2 : 1;
        EXPECT_EQ(micro_step_traffic(training.plan())[unit].gathers, gathers);
        EXPECT_EQ(counters.gathers[unit], gathers * micro_steps)
            << model << " unit " << unit << " prefetch " << prefetch;
        EXPECT_EQ(counters.reductions[unit], micro_steps) << model << " unit " << unit;
      }
      EXPECT_LE(counters.most_full_units, prefetch + 1);
      EXPECT_LE(counters.most_gradient_slots, 2);
    }
  }
}

TEST(Counters, BytesBetweenNodesAreThePlannedOnes) {
  for (const auto& nodes : node_layouts()) {
    for (const ReductionOrder order : {ReductionOrder::rank, ReductionOrder::hierarchical}) {
      for (const Strategy strategy : {Strategy::full, Strategy::no_shard}) {
        RunConfig config = small_run();
        config.reduction.order = order;
        config.parallel.strategy = strategy;
        TrainingWorld training(world(), small_model("tied"), config, nodes);
        static_cast<void>(run_step(training.context(), training.batches(), 1, 0, false));
        EXPECT_EQ(training.fabric().floats_sent(),
                  floats_sent_by_step(training.plan(), strategy == Strategy::full, training.fabric().topology(),
                                      order == ReductionOrder::rank ? SumOrder::rank : SumOrder::hierarchical,
                                      12 / world().size()));
      }
    }
  }
}

TEST(Counters, NothingIsAllocatedAfterTheStart) {
  RunConfig config = small_run();
  TrainingWorld training(world(), small_model("tied"), config);
  const TrainContext context = training.context();
  const std::size_t before = training.device().allocations();
  for (std::int64_t step = 1; step <= 3; ++step)
    static_cast<void>(run_step(context, training.batches(), step, 0, false));
  EXPECT_EQ(training.device().allocations(), before);
}

TEST(Memory, FullShardingHoldsShardsAndFewSlots) {
  const ModelPlan plan = small_model("untied");
  for (const int prefetch : {0, 1, 2, 3}) {
    const StorePlan store{plan.units, prefetch, true};
    std::int64_t largest = 0, shards = 0;
    for (const UnitSpec& unit : plan.units) {
      const FlatLayout layout(unit, world().size());
      largest = std::max(largest, layout.padded_elements());
      shards += layout.block_elements();
    }
    const SlotPlan slots = slot_plan(store, world().size());
    EXPECT_EQ(slots.slot_elements, largest);
    EXPECT_EQ(slots.parameter_slots, prefetch + 1);
    EXPECT_EQ(slots.gradient_slots, 2);
    EXPECT_EQ(shard_bytes(store, world().size()), static_cast<std::uint64_t>(shards) * 4 * sizeof(float));
    // Allocated is what was planned.
    RunConfig config = small_run();
    config.parallel.prefetch = prefetch;
    TrainingWorld training(world(), plan, config);
    EXPECT_GE(training.device().bytes_in_use(), shard_bytes(store, world().size()));
    EXPECT_EQ(training.device().bytes_in_use(),
              shard_bytes(store, world().size()) + ModelRunner::activation_bytes(plan, 1, sequence_length, true));
  }
}

}  // namespace
}  // namespace lamina::test
