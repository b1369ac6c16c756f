// Races of streams (CASES.md, N8): each kind of wait is left out, with delays that make it matter, and must be caught.
#include "train/finality.hpp"
#include "train/mutation_settings.hpp"
#include "train/schedule_edits.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <lamina/train/step_plan.hpp>

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

const Setting full = with_strategy(Strategy::full);

bool computes(const Operation& operation) {
  return operation.kind == OperationKind::forward || operation.kind == OperationKind::backward;
}
Pick any() {
  return [](const Operation&) { return true; };
}

// The control of a dropped wait has the delays, too.
Setting with_late(const std::string& name, const Pick& late, std::chrono::milliseconds by) {
  return and_also(full, name + " late", [=](Experiment& e) {
    e.steps = 2;
    e.hooks.before = [=](const Operation& operation) {
      if (late(operation)) std::this_thread::sleep_for(by);
    };
  });
}

TEST(Mutations, N8ComputationsWaitForTheirBatch) {
  if (races_are_reported) GTEST_SKIP() << "the mutation is a data race";
  expect_caught({"N8", "the forward does not wait for its micro-batch",
                 with_late("loads", of_kind(OperationKind::load), std::chrono::milliseconds(5)),
                 schedule_bug([](Schedule& s) { drop_waits(s, computes, of_kind(OperationKind::load)); })});
  expect_caught(
      {"N8", "a load does not wait for the computations on its buffer",
       with_late(
           "first stages", [](const Operation& o) { return o.kind == OperationKind::forward && o.stage == 0; },
           std::chrono::milliseconds(5)),
       schedule_bug([](Schedule& s) { drop_waits(s, of_kind(OperationKind::load), any()); })});
}

TEST(Mutations, N8ComputationsWaitForTheirGather) {
  const Setting late = with_late("gathers", of_kind(OperationKind::gather), std::chrono::milliseconds(1));
  for (const OperationKind kind : {OperationKind::forward, OperationKind::backward}) {
    expect_caught({"N8",
                   "a " + std::string(name_of(kind)) + " does not wait for its gather",
                   late,
                   schedule_bug([=](Schedule& s) { drop_waits(s, of_kind(kind), of_kind(OperationKind::gather)); }),
                   {"its weights are used while it is not full"}});
  }
}

TEST(Mutations, N8GathersWaitForAFreeSlot) {
  expect_caught({"N8",
                 "a gather does not wait for its slot",
                 with_late("computations", computes, std::chrono::milliseconds(1)),
                 schedule_bug([](Schedule& s) { drop_waits(s, of_kind(OperationKind::gather), any()); }),
                 {"gather"}});
  const Setting kept =
      and_also(with_late("computations", computes, std::chrono::milliseconds(1)), "all weights on all ranks",
               [](Experiment& e) { e.config.parallel.strategy = Strategy::no_shard; });
  expect_caught({"N8",
                 "a gather does not wait for its unit's last use",
                 kept,
                 schedule_bug([](Schedule& s) { drop_waits(s, of_kind(OperationKind::gather), any()); }),
                 {"gather while it is gathered already"}});
}

TEST(Mutations, N8ReductionsWaitForTheirBackward) {
  if (races_are_reported) GTEST_SKIP() << "the mutation is a data race";
  const Change dropped = schedule_bug(
      [](Schedule& s) { drop_waits(s, of_kind(OperationKind::reduce), of_kind(OperationKind::backward)); });
  for (const std::string model : {"untied", "tied"}) {
    const Setting late = and_also(full, "gradients of " + model + " written late", [=](Experiment& e) {
      e.model = model;
      e.steps = 2;
      store_bug<LateWriter>()(e);
    });
    expect_caught({"N8", "a reduction does not wait for its backward (" + model + ")", late, dropped});
  }
}

TEST(Mutations, N8BackwardsWaitForAFreeGradientSlot) {
  expect_caught({"N8",
                 "a backward does not wait for its gradient slot",
                 with_late("reductions", of_kind(OperationKind::reduce), std::chrono::milliseconds(2)),
                 schedule_bug([](Schedule& s) {
                   drop_waits(s, of_kind(OperationKind::backward), of_kind(OperationKind::reduce));
                 }),
                 {"its gradient has no free slot"}});
}

TEST(Mutations, N8ReplicasExchangeAfterTheLastReduction) {
  if (ranks() == 1) return note_not_here("N8", "replicas exchange their sums before the last reduction");
  expect_caught({"N8", "replicas exchange their sums before the last reduction", with_strategy(Strategy::hybrid, 1),
                 schedule_bug([](Schedule& s) {
                   const std::size_t finish = find_operation(s, of_kind(OperationKind::finish));
                   const std::size_t reduce = find_operation(s, [&](const Operation& o) {
                     return o.kind == OperationKind::reduce && o.unit == s[finish].unit &&
                            o.micro_step == s[finish].micro_step;
                   });
                   move_operation(s, finish, reduce);
                 })});
}

// Buckets of 1 KiB, and a watch on whether they are final.
Setting with_watch(const std::string& model, const std::string& units) {
  return {"finality of " + model + " " + units, [=](Experiment& e) {
            e.model = model;
            e.units = units;
            e.steps = 1;
            e.config.train.global_batch = 2 * ranks();
            e.config.parallel.bucket_mb = 1.0 / 1024;
            const ModelPlan plan = small_model(model, units);
            const Topology topology(judges().rank(), std::vector<int>(static_cast<std::size_t>(ranks()), 0),
                                    std::vector<std::string>(static_cast<std::size_t>(ranks())));
            const StorePlan store = make_store_plan(e.config.parallel, store_units(plan), topology, SumOrder::rank);
            const Mesh mesh(topology, store.shard_size);
            const auto log = std::make_shared<FinalityLog>(training_shape(plan, store, mesh, 2, true).units);
            e.store = [log](TrainingWorld& training) { return std::make_unique<FinalityStore>(training.store(), log); };
            e.hooks.after = [log](const Operation& operation) {
              if (operation.kind != OperationKind::backward) return;
              std::this_thread::sleep_for(std::chrono::milliseconds(2));
              log->part_over(operation);
            };
          }};
}

TEST(Mutations, N8BucketsAreFinalWhenTheyLeave) {
  for (const std::string model : {"tied", "untied"}) {
    for (const std::string units : {"layer", "block", "layers:2", "size:350", "size:1000000"}) {
      Experiment experiment;
      with_watch(model, units).apply(experiment);
      for (const Observation& rank : observe(experiment))
        EXPECT_EQ(rank.error + rank.difference + rank.counters, "") << model << " " << units;
    }
  }
  expect_caught({"N8",
                 "a bucket leaves one part of the backward too early",
                 with_watch("untied", "layer"),
                 schedule_bug([](Schedule& s) {
                   for (Operation& operation : s) {
                     if (operation.kind != OperationKind::reduce) continue;
                     for (std::size_t& wait : operation.waits) {
                       if (s[wait].kind == OperationKind::backward && s[wait].part > 0) --wait;
                     }
                   }
                 }),
                 {"a bucket"}});
}

}  // namespace
}  // namespace lamina::test
