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

// The laws hold for every training loss: this one has both terms.
RunConfig run_with_loss_terms() {
  RunConfig config = small_run();
  config.train.label_smoothing = 0.1;
  config.train.z_loss = 1e-2;
  return config;
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

// Every strategy, with a shard size that divides this world where one is needed.
const std::vector<Strategy>& all_strategies() {
  static const std::vector<Strategy> list{Strategy::no_shard, Strategy::shard_optimizer, Strategy::shard_grad_op,
                                          Strategy::full,     Strategy::hybrid,          Strategy::hybrid_optimizer};
  return list;
}

ParallelSection parallel_of(Strategy strategy, std::int64_t shard_size = 0) {
  ParallelSection parallel;
  parallel.strategy = strategy;
  const bool hybrid = strategy == Strategy::hybrid || strategy == Strategy::hybrid_optimizer;
  if (hybrid) parallel.shard_size = shard_size > 0 ? shard_size : (world().size() % 2 == 0 ? 2 : world().size());
  return parallel;
}

void expect_same(const RunRecord& run, const RunRecord& expected, const std::string& what) {
  EXPECT_EQ(run.losses, expected.losses) << what;
  EXPECT_EQ(run.norms, expected.norms) << what;
  EXPECT_EQ(run.validation, expected.validation) << what;
  EXPECT_TRUE(run.weights == expected.weights) << what << ": the final weights differ";
}

void check(const std::string& model, Strategy strategy, std::int64_t prefetch, std::int64_t micro_batch,
           const std::vector<int>& nodes, std::int64_t shard_size = 0) {
  RunConfig config = small_run();
  config.train.micro_batch = micro_batch;
  config.parallel = parallel_of(strategy, shard_size);
  config.parallel.prefetch = prefetch;
  TrainingWorld training(world(), small_model(model), config, nodes);
  const RunRecord run = run_training(training, config.train.steps);
  expect_same(run, oracle(model, micro_batch),
              model + " " + std::string(name_of(strategy)) + " prefetch " + std::to_string(prefetch) + " micro_batch " +
                  std::to_string(micro_batch) + " nodes " + testing::PrintToString(nodes));
}

TEST(SameBits, EveryStrategyPrefetchAndNodeLayout) {
  for (const std::string model : {"tied", "untied"}) {
    for (const auto& nodes : node_layouts()) {
      check(model, Strategy::no_shard, 1, 1, nodes);
      for (const std::int64_t prefetch : {0, 1, 2, 3}) check(model, Strategy::full, prefetch, 1, nodes);
    }
  }
}

TEST(SameBits, PartlyShardedAndHybridStrategies) {
  for (const auto& nodes : node_layouts()) {
    for (const Strategy strategy : {Strategy::shard_optimizer, Strategy::shard_grad_op})
      check("tied", strategy, 1, 1, nodes);
    for (int shard_size = 1; shard_size <= world().size(); ++shard_size) {
      if (world().size() % shard_size != 0) continue;  // 1 x n, n x 1 and what lies between
      check("tied", Strategy::hybrid, 1, 1, nodes, shard_size);
      check("untied", Strategy::hybrid_optimizer, 2, 1, nodes, shard_size);
    }
  }
  check("untied", Strategy::shard_grad_op, 3, 1, node_layouts().front());
}

TEST(SameBits, EveryWayOfMakingUnits) {
  for (const std::string units : {"block", "layers:1", "layers:2", "layers:9", "size:1", "size:700", "size:1000000"}) {
    for (const std::string model : {"tied", "untied"}) {
      for (const Strategy strategy : all_strategies()) {
        RunConfig config = small_run();
        config.parallel = parallel_of(strategy);
        config.parallel.prefetch = strategy == Strategy::full ? 2 : 1;
        TrainingWorld training(world(), small_model(model, units), config, node_layouts().back());
        expect_same(run_training(training, config.train.steps), oracle(model, 1),
                    model + " " + units + " " + std::string(name_of(strategy)));
        const StoreCounters& counters = training.store().counters();
        EXPECT_LE(counters.most_gradient_slots, training.store_plan().gradient_slots);
        if (training.store_plan().keep_full) continue;
        EXPECT_LE(counters.most_full_units, config.parallel.prefetch + 1 + training.store_plan().pinned_units);
      }
    }
  }
}

TEST(SameBits, UnitsThatStayWhole) {
  const std::map<std::string, std::vector<std::string>> patterns{
      {"untied", {"model.embed_tokens*", "model.layers.1.*", "lm_head*, model.norm*"}},
      {"tied", {"lm_head*, model.norm*", "model.layers.*"}}};
  for (const auto& [model, ignores] : patterns) {
    for (const std::string& ignore : ignores) {
      for (const Strategy strategy : {Strategy::full, Strategy::shard_grad_op, Strategy::hybrid_optimizer}) {
        RunConfig config = small_run();
        config.parallel = parallel_of(strategy);
        config.parallel.ignore = ignore;
        TrainingWorld training(world(), small_model(model), config, node_layouts().back());
        expect_same(run_training(training, config.train.steps), oracle(model, 1),
                    model + " " + std::string(name_of(strategy)) + " without " + ignore);
        EXPECT_EQ(training.device().bytes_in_use(),
                  state_bytes(training.store_plan(), world().size()) +
                      ModelRunner::activation_bytes(training.plan(), 1, sequence_length, true));
      }
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

TEST(SameBits, LabelSmoothingAndZLoss) {
  RunConfig config = run_with_loss_terms();
  for (const std::string model : {"tied", "untied"}) {
    const RunRecord expected = run_oracle(small_model(model), config, config.train.steps);
    EXPECT_NE(expected.losses, oracle(model, 1).losses);
    for (const auto& nodes : {node_layouts().front(), node_layouts().back()}) {
      for (const Strategy strategy : {Strategy::no_shard, Strategy::full, Strategy::hybrid}) {
        config.parallel = parallel_of(strategy);
        TrainingWorld training(world(), small_model(model), config, nodes);
        expect_same(run_training(training, config.train.steps), expected,
                    model + " " + std::string(name_of(strategy)) + " nodes " + testing::PrintToString(nodes));
      }
    }
  }
}

TEST(SameBits, TheOracleLearnsAndTheLawIsNotVacuous) {
  const RunRecord& record = oracle("tied", 1);
  EXPECT_LT(record.losses.back(), record.losses.front());
  for (const double loss : record.losses) EXPECT_TRUE(std::isfinite(loss));
  EXPECT_NE(oracle("tied", 1).weights, oracle("tied", 2).weights);  // another micro-batch is another list of atoms
}

TEST(SameBits, HierarchicalOrderRepeatsItselfAndIsCloseToRankOrder) {
  for (const Strategy strategy : {Strategy::full, Strategy::hybrid, Strategy::hybrid_optimizer}) {
    RunConfig config = small_run();
    config.reduction.order = ReductionOrder::hierarchical;
    config.parallel = parallel_of(strategy);
    const auto nodes = node_layouts().back();
    TrainingWorld first(world(), small_model("tied"), config, nodes);
    const RunRecord once = run_training(first, 5);
    TrainingWorld second(world(), small_model("tied"), config, nodes);
    const RunRecord twice = run_training(second, 5);
    expect_same(twice, once, "hierarchical");
    // The first gradient differs by rounding only; Adam then amplifies what rounds to another sign.
    EXPECT_EQ(once.losses[0], oracle("tied", 1).losses[0]);
    EXPECT_NEAR(once.norms[0], oracle("tied", 1).norms[0], 1e-6 * once.norms[0]);
    for (std::size_t i = 0; i < once.losses.size(); ++i) EXPECT_NEAR(once.losses[i], oracle("tied", 1).losses[i], 2e-2);
  }
}

// Gradients that are summed over micro-steps on each rank first: the bits of one rank are the oracle's; on several
// ranks sums are added in another order, the same every time.
TEST(SameBits, ReducingOnceAStepRepeatsItselfAndIsTheOracleOnOneRank) {
  for (const Strategy strategy : all_strategies()) {
    RunConfig config = small_run();
    config.parallel = parallel_of(strategy);
    config.parallel.reduce_each_micro_step = false;
    config.parallel.bucket_mb = 2.0 / 1024;
    TrainingWorld first(world(), small_model("tied"), config, node_layouts().back());
    const RunRecord once = run_training(first, 5);
    TrainingWorld second(world(), small_model("tied"), config, node_layouts().back());
    expect_same(run_training(second, 5), once, std::string(name_of(strategy)));
    for (std::size_t unit = 0; unit < first.plan().units.size(); ++unit)
      EXPECT_EQ(first.store().counters().reductions[unit], 5U);
    EXPECT_EQ(once.losses[0], oracle("tied", 1).losses[0]);
    EXPECT_NEAR(once.norms[0], oracle("tied", 1).norms[0], 1e-6 * once.norms[0]);
    for (std::size_t step = 0; world().size() == 1 && step < 5; ++step) {
      EXPECT_EQ(once.losses[step], oracle("tied", 1).losses[step]);
      EXPECT_EQ(once.norms[step], oracle("tied", 1).norms[step]);
    }
  }
}

TEST(Counters, OneGatherForwardOneBackwardOneReductionAndFewSlots) {
  for (const std::string model : {"tied", "untied"}) {
    for (const std::int64_t prefetch : {0, 1, 2, 3}) {
      RunConfig config = small_run();
      config.parallel.prefetch = prefetch;
      TrainingWorld training(world(), small_model(model), config);
      static_cast<void>(training.engine().run(training.batches(), 1, 0, false));
      const auto micro_steps = static_cast<std::uint64_t>(12 / world().size());
      const StoreCounters& counters = training.store().counters();
      for (std::size_t unit = 0; unit < training.plan().units.size(); ++unit) {
        // Two stages read a tied head's unit; a block reads its own once more in backward.
        const Stage& stage = training.plan().stages[model == "tied" ? unit + 1 : unit];
        const std::uint64_t gathers =
            stage.kind == StageKind::block || (model == "tied" && stage.kind == StageKind::head) ? 2 : 1;
        EXPECT_EQ(traffic_of(training.engine().shape())[unit].gathers, gathers * micro_steps);
        EXPECT_EQ(counters.gathers[unit], gathers * micro_steps)
            << model << " unit " << unit << " prefetch " << prefetch;
        EXPECT_EQ(counters.reductions[unit], micro_steps) << model << " unit " << unit;
      }
      EXPECT_LE(counters.most_full_units, prefetch + 1);
      EXPECT_LE(counters.most_gradient_slots, training.store_plan().gradient_slots);
    }
  }
}

TEST(Counters, BytesBetweenNodesAreThePlannedOnes) {
  for (const auto& nodes : node_layouts()) {
    for (const ReductionOrder order : {ReductionOrder::rank, ReductionOrder::hierarchical}) {
      for (const Strategy strategy : all_strategies()) {
        RunConfig config = small_run();
        config.reduction.order = order;
        config.parallel = parallel_of(strategy);
        TrainingWorld training(world(), small_model("tied"), config, nodes);
        const std::uint64_t before = training.fabrics().floats_sent();
        static_cast<void>(training.engine().run(training.batches(), 1, 0, false));
        EXPECT_EQ(training.fabrics().floats_sent() - before,
                  floats_sent_by_step(training.plan(), training.store_plan(), training.fabrics().mesh(),
                                      training.fabrics().order(), 12 / world().size()))
            << name_of(strategy) << " nodes " << testing::PrintToString(nodes);
      }
    }
  }
}

TEST(Counters, NothingIsAllocatedAfterTheStart) {
  RunConfig config = small_run();
  TrainingWorld training(world(), small_model("tied"), config);
  const std::size_t before = training.device().allocations();
  for (std::int64_t step = 1; step <= 3; ++step)
    static_cast<void>(training.engine().run(training.batches(), step, 0, false));
  EXPECT_EQ(training.device().allocations(), before);
}

TEST(Memory, FullShardingHoldsShardsAndFewSlots) {
  const ModelPlan plan = small_model("untied");
  for (const int prefetch : {0, 1, 2, 3}) {
    RunConfig config = small_run();
    config.parallel.prefetch = prefetch;
    TrainingWorld training(world(), plan, config);
    std::int64_t largest = 0, shards = 0;
    for (const UnitSpec& unit : plan.units) {
      const FlatLayout layout(unit, world().size());
      largest = std::max(largest, layout.padded_elements());
      shards += layout.block_elements();
    }
    const SlotPlans slots = slot_plans(training.store_plan(), training.fabrics().mesh());
    EXPECT_EQ(slots.world.slot_elements, largest);
    EXPECT_EQ(slots.world.parameter_slots, world().size() > 1 ? prefetch + 1 : 0);
    EXPECT_EQ(slots.world.gradient_slots, 2);
    EXPECT_EQ(state_bytes(training.store_plan(), world().size()),
              static_cast<std::uint64_t>(shards) * 4 * sizeof(float));
  }
}

TEST(Memory, WhatIsAllocatedIsWhatWasPlanned) {
  for (const auto& nodes : node_layouts()) {
    for (const Strategy strategy : all_strategies()) {
      RunConfig config = small_run();
      config.parallel = parallel_of(strategy);
      const ModelPlan plan = small_model("untied");
      TrainingWorld training(world(), plan, config, nodes);
      EXPECT_EQ(training.device().bytes_in_use(), state_bytes(training.store_plan(), world().size()) +
                                                      ModelRunner::activation_bytes(plan, 1, sequence_length, true))
          << name_of(strategy);
    }
  }
}

}  // namespace
}  // namespace lamina::test
