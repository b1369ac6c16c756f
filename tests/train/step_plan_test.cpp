// From a model and a strategy to the schedule of a step: which units are gathered and reduced, when, in which buckets.
#include <algorithm>

#include <lamina/base/error.hpp>
#include <lamina/train/step_plan.hpp>

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

ModelPlan plan_of(bool tied, const std::string& units) {
  const std::string json =
      R"({"model_type": "llama", "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 5,
      "num_attention_heads": 3, "num_key_value_heads": 1, "vocab_size": 257, "max_position_embeddings": 64,
      "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": )" +
      std::string(tied ? "true}" : "false}");
  return make_model_plan(parse_model_config(json, "test"), parse_unit_rule(units));
}

const Mesh& mesh() {
  static const Mesh two(Topology(0, {0, 0}, {"a", "a"}), 2);
  return two;
}

StorePlan store_of(const ModelPlan& plan, ParallelSection parallel = {}) {
  return make_store_plan(parallel, store_units(plan), mesh().world(), SumOrder::rank);
}

TEST(StepPlan, BlocksAreGatheredTwiceEdgesOnceRootsOnceAStep) {
  for (const bool tied : {false, true}) {
    for (const char* rule : {"layer", "block", "layers:2", "layers:9"}) {
      const ModelPlan plan = plan_of(tied, rule);
      const auto traffic = traffic_of(training_shape(plan, store_of(plan), mesh(), 3, true));
      for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
        const std::string& name = plan.units[unit].name;
        // With the head in the root the last block's forward and backward share a use.
        const bool last_block = plan.root && name == "layers.4";
        const bool twice = (name.starts_with("layers") && !last_block) || (tied && name == "head");
        EXPECT_EQ(traffic[unit].gathers, unit == plan.root ? 1U : (twice ? 6U : 3U)) << rule << " " << name;
        EXPECT_EQ(traffic[unit].reductions, 3U) << rule << " " << name;
      }
    }
  }
}

TEST(StepPlan, KeptUnitsAreGatheredOnceAStep) {
  ParallelSection parallel;
  parallel.strategy = Strategy::shard_grad_op;
  for (const char* rule : {"layer", "block", "layers:2"}) {
    const ModelPlan plan = plan_of(true, rule);
    for (const UnitTraffic& unit : traffic_of(training_shape(plan, store_of(plan, parallel), mesh(), 4, true)))
      EXPECT_EQ(unit.gathers, 1U) << rule;
  }
}

TEST(StepPlan, SlotsOfTheScheduleAreTheStores) {
  for (const bool tied : {false, true}) {
    for (const char* rule : {"layer", "block", "layers:2"}) {
      for (const std::int64_t forward : {0, 1, 3}) {
        for (const std::int64_t backward : {-1, 0, 2}) {
          for (const Strategy strategy : {Strategy::full, Strategy::shard_grad_op}) {
            ParallelSection parallel;
            parallel.strategy = strategy;
            parallel.prefetch = forward;
            parallel.prefetch_backward = backward;
            const ModelPlan plan = plan_of(tied, rule);
            const StorePlan store = store_of(plan, parallel);
            EXPECT_EQ(parameter_slots(training_shape(plan, store, mesh(), 2, true)),
                      static_cast<std::size_t>(slot_plans(store, mesh()).world.parameter_slots));
          }
        }
      }
    }
  }
}

// A tied head's gradient is open from the head's backward to the embedding's: the blocks between need two slots
// besides.
TEST(StepPlan, AHeldGradientHasASlotOfItsOwn) {
  for (const char* rule : {"layer", "block", "layers:2", "size:1000000000"}) {
    for (const bool tied : {false, true}) {
      const ModelPlan plan = plan_of(tied, rule);
      const bool one_unit = plan.units.size() == 1;
      const bool held = !one_unit && (tied || plan.root.has_value());
      EXPECT_EQ(store_of(plan).gradient_slots, held ? 3 : 2) << rule << " tied " << tied;
      // No backward of a block waits for the reduction of the block before it, only for the one before that.
      const auto schedule = step_schedule(training_shape(plan, store_of(plan), mesh(), 1, true));
      for (const Operation& operation : schedule) {
        if (operation.kind != OperationKind::backward || operation.stage == 0) continue;
        for (const std::size_t wait : operation.waits) {
          const Operation& earlier = schedule[wait];
          if (earlier.kind != OperationKind::reduce) continue;
          EXPECT_GT(earlier.stage, operation.stage + 1) << rule;
        }
      }
    }
  }
}

TEST(StepPlan, BucketsCoverEveryElementOnceAndBecomeFinalFromTheEnd) {
  ParallelSection parallel;
  parallel.bucket_mb = 1.0 / 1024;
  const ModelPlan plan = plan_of(false, "layers:2");
  const ScheduleShape shape = training_shape(plan, store_of(plan, parallel), mesh(), 1, true);
  std::vector<std::int64_t> next;
  for (const ScheduledUnit& unit : shape.units) next.push_back(unit.elements);
  for (const Operation& operation : step_schedule(shape)) {
    if (operation.kind != OperationKind::reduce) continue;
    const FlatRange bucket = bucket_range(shape.units[operation.unit], operation.part);
    EXPECT_EQ(bucket.end, next[operation.unit]);
    EXPECT_LE(bucket.length(), 256);
    // Not before the stage in which it begins has run.
    EXPECT_GE(bucket.begin, operation.stage + 1 < shape.stages.size() ? shape.stages[operation.stage].offset : 0);
    next[operation.unit] = bucket.begin;
    EXPECT_EQ(operation.completes, bucket.begin == 0);
  }
  for (const std::int64_t rest : next) EXPECT_EQ(rest, 0);
}

TEST(StepPlan, ReducingTheLastMicroStepOnlyAccumulatesTheOthers) {
  ParallelSection parallel;
  parallel.reduce_each_micro_step = false;
  const ModelPlan plan = plan_of(true, "layer");
  const ScheduleShape shape = training_shape(plan, store_of(plan, parallel), mesh(), 4, true);
  const auto schedule = step_schedule(shape);
  EXPECT_EQ(std::ranges::count(schedule, OperationKind::accumulate, &Operation::kind),
            static_cast<std::ptrdiff_t>(3 * plan.units.size()));
  for (const UnitTraffic& unit : traffic_of(shape)) EXPECT_EQ(unit.reductions, 1U);
}

TEST(StepPlan, RefusesBucketsThatNoScheduleHolds) {
  ParallelSection parallel;
  parallel.bucket_mb = 1e-9;
  const ModelPlan plan = plan_of(true, "layer");
  const StorePlan store = store_of(plan, parallel);
  EXPECT_NO_THROW(static_cast<void>(training_shape(plan, store, mesh(), 1, true)));
  EXPECT_THROW(static_cast<void>(training_shape(plan, store, mesh(), 1000, true)), UsageError);
}

TEST(StepPlan, RefusesMoreMicroStepsThanAScheduleHolds) {
  const ModelPlan plan = plan_of(false, "layer");
  for (const std::int64_t micro_steps : {std::int64_t{1} << 62, std::int64_t{1} << 61, std::int64_t{2'000'000}}) {
    try {
      static_cast<void>(training_shape(plan, store_of(plan), mesh(), micro_steps, true));
      FAIL() << micro_steps;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("train.global_batch"), std::string::npos) << error.what();
    }
  }
}

TEST(StepPlan, EvaluationOnlyGoesForward) {
  const ModelPlan plan = plan_of(true, "layer");
  for (const Operation& operation : step_schedule(evaluation_shape(plan, store_of(plan), mesh(), true))) {
    EXPECT_NE(operation.kind, OperationKind::backward);
    EXPECT_NE(operation.kind, OperationKind::reduce);
  }
}

}  // namespace
}  // namespace lamina::test
