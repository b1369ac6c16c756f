// Stale weights, mixed gradients, tables of garbage (CASES.md, N9 to N11): each seeded bug must be caught.
#include "train/delays.hpp"
#include "train/mutation_settings.hpp"

#include <algorithm>
#include <chrono>

#include <lamina/train/initialise.hpp>
#include <lamina/train/step_plan.hpp>

#include <gmock/gmock.h>
#include <stdlib.h>

namespace lamina::test {
namespace {

const Setting full = with_strategy(Strategy::full);

void forget_unit_1(WeightStore& store, std::size_t unit) {
  if (unit != 1) store.publish(unit);
}

TEST(Mutations, N9UpdatesArePublished) {
  if (ranks() == 1) return note_not_here("N9", "a publication is forgotten");
  const Setting divided = with_strategy(Strategy::shard_optimizer);
  expect_caught({"N9", "one unit's update is not published", divided, store_bug<PublishingStore>(forget_unit_1)});
  expect_caught({"N9", "one unit's update is not published inside groups",
                 with_strategy(Strategy::hybrid_optimizer, std::max(1, ranks() / 2)), [](Experiment& e) {
                   if (ranks() == 3) e.config.parallel.shard_size = 1;
                   store_bug<PublishingStore>(forget_unit_1)(e);
                 }});
  expect_caught({"N9",
                 "one rank publishes one unit less",
                 and_also(divided, "little patience", [](Experiment& e) { e.deadline_s = 1.5; }),
                 store_bug<PublishingStore>([](WeightStore& store, std::size_t unit) {
                   if (unit + 1 < store.unit_count() || !on_last_rank()) store.publish(unit);
                 }),
                 {"step 1, update: publish of head: rank 0 on", "waited"}});
  const auto load = [](TrainingWorld& training, bool all) {
    initialise_randomly(training.plan(), 5, training.store());
    publish_all(training.store());
    initialise_randomly(training.plan(), training.config().run.seed, training.store());
    for (std::size_t unit = 0; unit < training.store().unit_count(); ++unit) {
      if (all || unit != 1) training.store().publish(unit);
    }
  };
  expect_caught(
      {"N9", "one unit is not published after loading",
       and_also(divided, "loaded", [=](Experiment& e) { e.first = [=](TrainingWorld& t) { load(t, true); }; }),
       [=](Experiment& e) { e.first = [=](TrainingWorld& t) { load(t, false); }; }});
}

TEST(Mutations, N9WeightsAreNewAfterAnUpdate) {
  expect_caught({"N9",
                 "a unit stays full over an update",
                 with_strategy(Strategy::shard_grad_op),
                 store_bug<HoardingStore>(std::size_t{1}, false),
                 {"it was gathered before its last update"}});
  expect_caught(
      {"N9", "a unit's first content is used for ever", full, store_bug<HoardingStore>(std::size_t{1}, true)});
}

TEST(Mutations, N10GradientsAreNotMixed) {
  if (races_are_reported) GTEST_SKIP() << "the mutation is a data race";
  const Setting staged = and_also(full, "gradients staged in two buffers", [](Experiment& e) {
    e.model = "untied";
    e.steps = 2;
    store_bug<StagingStore>(std::size_t{2})(e);
  });
  expect_caught({"N10", "two gradient slots share their memory", staged, store_bug<StagingStore>(std::size_t{1})});
  if (ranks() == 1) return note_not_here("N10", "a gradient slot is written again before all have read it");
  expect_caught({"N10", "a gradient slot is written again before all have read it", full, store_bug<SlotScribbler>()});
}

// Every backward writes its unit's number, counted from 1.
class ConstantGradients final : public StreamWork {
 public:
  ConstantGradients(WeightStore& store, const ScheduleShape& shape) : store_(store), shape_(shape) {}
  void execute(const Operation& operation, Streams&) override {
    const FlatRange bucket = bucket_range(shape_.units[operation.unit], operation.part);
    switch (operation.kind) {
      case OperationKind::gather:
        return store_.gather(operation.unit, operation.slot);
      case OperationKind::release:
        return store_.release(operation.unit);
      case OperationKind::backward:
        std::ranges::fill(store_.gradient(operation.unit, operation.slot), static_cast<float>(operation.unit + 1));
        return;
      case OperationKind::reduce:
        return store_.reduce(operation.unit, operation.slot, bucket, operation.completes);
      case OperationKind::finish:
        return store_.finish_gradient(operation.unit);
      case OperationKind::accumulate:
      case OperationKind::forward:
      case OperationKind::load:
        return;
    }
  }

 private:
  WeightStore& store_;
  const ScheduleShape& shape_;
};

TEST(Mutations, N10ConstantGradientsComeBackUnmixed) {
  for (const Strategy strategy : {Strategy::full, Strategy::shard_optimizer, Strategy::no_shard}) {
    RunConfig config = small_run();
    config.parallel.strategy = strategy;
    config.parallel.bucket_mb = 10.0 / 1024;
    TrainingWorld training(judges(), small_model("untied"), config);
    WeightStore& store = training.store();
    const ScheduleShape shape =
        training_shape(training.plan(), training.store_plan(), training.fabrics().mesh(), micro_steps(), true);
    Streams streams(true);
    streams.set_hooks(random_delays(static_cast<std::uint64_t>(judges().rank()), 6, std::chrono::milliseconds(1)));
    ConstantGradients work(store, shape);
    store.clear_gradients();
    streams.run(Program(step_schedule(shape)), work);
    for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
      const OptimizerShard shard = store.optimizer_shard(unit);
      const std::int64_t elements =
          std::clamp(store.layout(unit).elements() - shard.range.begin, std::int64_t{0}, shard.range.length());
      const auto own = shard.grad.first(static_cast<std::size_t>(elements));
      const auto padding = shard.grad.subspan(static_cast<std::size_t>(elements));
      const auto sum = static_cast<float>((unit + 1) * static_cast<std::size_t>(config.train.global_batch));
      EXPECT_THAT(own, testing::Each(sum)) << name_of(strategy) << " unit " << unit;
      EXPECT_THAT(padding, testing::Each(0.0F)) << name_of(strategy) << " unit " << unit;
    }
    EXPECT_LE(store.counters().most_gradient_slots, 2);
  }
}

// A device that shows the last memory it gave away.
class OpenDevice final : public Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "open"; }
  [[nodiscard]] std::span<float> last() const { return last_; }

 private:
  void* do_allocate(std::size_t bytes) override {
    void* const memory = ::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == nullptr) return nullptr;
    last_ = {static_cast<float*>(memory), bytes / sizeof(float)};
    std::ranges::fill(last_, 0.0F);
    return memory;
  }
  void do_free(void* data, std::size_t) noexcept override { ::free(data); }
  std::span<float> last_;
};

// A runner whose rotary table was overwritten after it was made. The table is the last of the activations: 9 positions
// of 3 cosines and 3 sines, to the end of a cache line. Without `spoil` it is left as it is.
Change rope_table(bool spoil, bool on_all_ranks) {
  return [=](Experiment& e) {
    const auto device = std::make_shared<OpenDevice>();
    e.runner = [=](TrainingWorld& training) {
      auto runner = std::make_unique<ModelRunner>(training.plan(), *device, training.context().ops,
                                                  training.config().train.micro_batch, sequence_length, true);
      const std::span<float> table = device->last().last(64);
      EXPECT_EQ(table[0], 1.0F);  // cos 0
      EXPECT_EQ(table[3], 0.0F);  // sin 0
      if (spoil && (on_all_ranks || on_last_rank())) std::ranges::fill(table.first(54), 0.3F);
      return runner;
    };
  };
}

TEST(Mutations, N11TheRotaryTableIsWhatItWas) {
  const Setting open = and_also(full, "rope", rope_table(false, false));
  expect_caught({"N11", "the rotary table is garbage on every rank", open, rope_table(true, true)});
  if (ranks() == 1) return note_not_here("N11", "the rotary table is garbage on one rank");
  expect_caught({"N11", "the rotary table is garbage on one rank", open, rope_table(true, false)});
}

}  // namespace
}  // namespace lamina::test
