// Ranks that do not do the same (CASES.md, H1, H2) and more than was planned (M5): each seeded bug must be caught, in
// bounded time.
#include "train/mutation_settings.hpp"
#include "train/schedule_edits.hpp"

#include <algorithm>

#include <gmock/gmock.h>

namespace lamina::test {
namespace {

const Setting full = with_strategy(Strategy::full);

Change little_patience() {
  return [](Experiment& e) { e.deadline_s = 1.5; };
}
Change on_its_own_nodes() {
  return [](Experiment& e) {
    for (int rank = 0; rank < ranks(); ++rank) e.nodes.push_back(rank);
  };
}
// The last rank has another schedule than the others.
Change last_rank_schedule(const std::function<void(Schedule&)>& edit) {
  return schedule_bug([=](Schedule& schedule) {
    if (on_last_rank()) edit(schedule);
  });
}

// The first two gathers (of a unit each), or reductions that complete a unit, the other way round.
void swap_first_two(Schedule& schedule, OperationKind kind) {
  const std::size_t first = find_operation(schedule, of_kind(kind));
  const std::size_t second = find_operation(
      schedule, [&](const Operation& o) { return o.kind == kind && o.unit != schedule[first].unit; }, first);
  if (kind == OperationKind::gather) return move_operation(schedule, second, first);
  move_operation(schedule, first, second + 1);
}

TEST(Mutations, H1AnotherOrderOnOneRankIsNamed) {
  if (ranks() == 1) return note_not_here("H1", "one rank has another order");
  const std::string last = "rank " + std::to_string(ranks() - 1);
  const Setting impatient = and_also(full, "little patience", little_patience());
  const auto swapped = [](OperationKind kind) {
    return last_rank_schedule([kind](Schedule& schedule) { swap_first_two(schedule, kind); });
  };
  expect_caught({"H1",
                 "one rank swaps two gathers, ranks share memory",
                 impatient,
                 swapped(OperationKind::gather),
                 {"step 1, micro-step 1, gather of layers.0", last + " on", "waited"}});
  expect_caught({"H1",
                 "one rank swaps two gathers, ranks on nodes of their own",
                 and_also(full, "nodes", on_its_own_nodes()),
                 swapped(OperationKind::gather),
                 {"was 'gather head' on rank 0 and 'gather layers.0' on " + last}});
  // With a tied head there is one slot for all blocks, and the second backward would not begin.
  const Setting two_slots = and_also(impatient, "untied", [](Experiment& e) { e.model = "untied"; });
  expect_caught({"H1",
                 "one rank swaps two reductions",
                 two_slots,
                 swapped(OperationKind::reduce),
                 {"step 1, micro-step 1, reduce of ", last + " on", "waited"}});
}

TEST(Mutations, H1AnotherOrderOfPublicationsIsNamed) {
  if (ranks() == 1) return note_not_here("H1", "one rank publishes in another order");
  const auto swapped = [](WeightStore& store, std::size_t unit) {
    if (on_last_rank() && unit < 2) unit = 1 - unit;
    store.publish(unit);
  };
  for (const Strategy strategy : {Strategy::shard_optimizer, Strategy::full}) {
    expect_caught({"H1",
                   "one rank publishes two units the other way round, " + std::string(name_of(strategy)),
                   with_strategy(strategy),
                   store_bug<PublishingStore>(swapped),
                   {"'publish layers.0' on rank 0 and 'publish layers.1' on rank " + std::to_string(ranks() - 1)}});
  }
}

// The data ends on the last rank before its last micro-step.
LoadBatch ending(const LoadBatch& load) {
  return [=](std::uint64_t first, std::int64_t count) {
    const auto batch = static_cast<std::uint64_t>(small_run().train.global_batch);
    if (on_last_rank() && first == batch - 1) throw DataError("the data has ended");
    return load(first, count);
  };
}

TEST(Mutations, H2OneRankHasFewerBatches) {
  Change refuses = [](Experiment& e) { e.batches = ending; };
  expect_caught({"H2", "the data ends early on one rank", full, refuses, {"the data has ended"}});
  expect_caught({"H2", "one rank skips a batch", full, [](Experiment& e) {
                   e.batches = [](const LoadBatch& load) {
                     return [=](std::uint64_t first, std::int64_t count) {
                       return load(on_last_rank() && first >= 12 ? first + 12 : first, count);
                     };
                   };
                 }});
  if (ranks() == 1) return note_not_here("H2", "one rank has one micro-step less");
  expect_caught({"H2",
                 "one rank has one micro-step less",
                 and_also(full, "little patience", little_patience()),
                 last_rank_schedule([](Schedule& schedule) {
                   remove_operations(schedule, [](const Operation& operation) {
                     return operation.micro_step + 1 == static_cast<std::size_t>(micro_steps());
                   });
                 }),
                 {"waited", "step 1, exchange: rank " + std::to_string(ranks() - 1) + " on"}});
}

// Micro-batches beyond the data have no labels and weigh nothing: the same bits as the oracle's, at every number of
// ranks.
TEST(Mutations, H2PaddingWeighsNothing) {
  for (const std::int64_t sequences : {45, 37}) {  // of 48 in four steps
    Experiment padded;
    padded.sequences = sequences;
    for (const Observation& rank : observe(padded)) {
      EXPECT_EQ(rank.error + rank.difference + rank.counters, "") << sequences;
    }
  }
  const Setting short_data = and_also(full, "padding", [](Experiment& e) { e.sequences = 45; });
  expect_caught({"H2", "padding is trained on", short_data, [](Experiment& e) {
                   e.batches = [](const LoadBatch& load) {
                     return [=](std::uint64_t first, std::int64_t count) {
                       return load(first < 45 ? first : first - 45, count);
                     };
                   };
                 }});
}

TEST(Mutations, M5ARedundantGatherIsCounted) {
  const auto gathered_twice = [](Schedule& schedule) {
    const std::size_t place =
        find_operation(schedule, [](const Operation& o) { return o.kind == OperationKind::gather && o.unit == 1; });
    Operation again = schedule[place], release = again;
    release.kind = OperationKind::release;
    release.waits.clear();
    insert_operations(schedule, place, {again, release});
  };
  expect_caught({"M5",
                 "a unit is gathered once more than it must be",
                 full,
                 schedule_bug(gathered_twice),
                 {"layers.1 has", "gathers, planned"}});
  const Setting kept = and_also(full, "kept until the backward",
                                [](Experiment& e) { e.config.parallel.reshard_after_forward = Reshard::no; });
  expect_caught({"M5",
                 "a kept unit is gathered again for the backward",
                 kept,
                 schedule_bug([](Schedule& schedule) {
                   const std::size_t place = find_operation(
                       schedule, [](const Operation& o) { return o.kind == OperationKind::backward && o.unit == 1; });
                   Operation gather = schedule[find_operation(schedule, of_kind(OperationKind::gather))];
                   gather.unit = gather.slot = 1;
                   gather.stream = StreamKind::compute;
                   gather.waits.clear();
                   Operation release = gather;
                   release.kind = OperationKind::release;
                   insert_operations(schedule, place, {release, gather});
                 }),
                 {"layers.1 has", "gathers, planned"}});
}

}  // namespace
}  // namespace lamina::test
