// Wrong numbers without an error (CASES.md, N1 to N7): each bug that the field reported is put in and must be caught.
#include "train/mutation_settings.hpp"
#include "train/schedule_edits.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <lamina/optim/gradient_scale.hpp>

#include <gmock/gmock.h>

namespace lamina::test {
namespace {

const Setting full = with_strategy(Strategy::full), copies = with_strategy(Strategy::no_shard);

// Sequences of a micro-batch or more of the data all runs use.
std::int64_t labelled_tokens(std::int64_t first, std::int64_t sequences) {
  RandomBatches data(29);
  const MicroBatch batch = data.load(static_cast<std::uint64_t>(first), sequences);
  return std::ranges::count_if(batch.labels, [](std::int32_t label) { return label != ignored_label; });
}
std::int64_t tokens_of_step(std::int64_t step) {
  const std::int64_t batch = small_run().train.global_batch;
  return labelled_tokens((step - 1) * batch, batch);
}
std::int64_t own_tokens(const GradientPlace& at) {
  const std::int64_t batch = small_run().train.global_batch;
  return labelled_tokens((at.step - 1) * batch + at.micro_step * ranks() + judges().rank(), 1);
}

void scale(std::span<float> values, double factor) {
  for (float& value : values) value = static_cast<float>(value * factor);
}

// AdamW that clips by the norm of this rank's shards alone.
class ClipsAlone final : public Optimizer {
 public:
  ClipsAlone(TrainingWorld& training, const OptimSection& optim)
      : Optimizer(tensor_rules(optim, training.plan().units), optim), store_(training.store()), optim_(optim) {}

 private:
  void update_piece(Ops& ops, const Piece& piece, const UpdateStep& step, double weight_decay) const override {
    ExactSum own;
    add_gradient_squares(store_, ops, own);
    AdamWStep hyper{step.lr, optim_.beta1, optim_.beta2, optim_.eps, weight_decay};
    hyper.bias1 = 1.0 - std::pow(optim_.beta1, static_cast<double>(step.step));
    hyper.bias2 = 1.0 - std::pow(optim_.beta2, static_cast<double>(step.step));
    hyper.grad_scale = gradient_scale(own.value(), tokens_of_step(step.step), optim_.grad_clip).scale;
    ops.adamw(piece.param, piece.exp_avg, piece.exp_avg_sq, piece.grad, hyper);
  }
  WeightStore& store_;
  OptimSection optim_;
};

FlatRange whole_optimizer_range(WeightStore& store, std::size_t unit) { return store.optimizer_shard(unit).range; }

TEST(Mutations, N1TheNormCountsEveryElementOnce) {
  if (ranks() == 1) return note_not_here("N1", "the norm of some shards, or of every replica");
  const auto first_rank_only = [](WeightStore& store, std::size_t unit) {
    const FlatRange own = store.counted_range(unit);
    return judges().rank() == 0 ? own : FlatRange{own.begin, own.begin};
  };
  expect_caught({"N1", "the norm is that of the first rank's shard", full, store_bug<CountingStore>(first_rank_only)});
  expect_caught({"N1", "every replica counts in the norm", copies, store_bug<CountingStore>(whole_optimizer_range)});
  if (ranks() % 2 == 0) {
    expect_caught({"N1", "every replica group counts in the norm", with_strategy(Strategy::hybrid, ranks() / 2),
                   store_bug<CountingStore>(whole_optimizer_range)});
  }
  const Setting clipped = and_also(full, "clipping hard", [](Experiment& e) { e.config.optim.grad_clip = 0.05; });
  expect_caught({"N1", "each rank clips by the norm of its own shards", clipped, [](Experiment& e) {
                   e.optimizer = [](TrainingWorld& training) {
                     return std::make_unique<ClipsAlone>(training, training.config().optim);
                   };
                 }});
}

TEST(Mutations, N2DegenerateMeshesSynchronise) {
  if (ranks() == 1) return note_not_here("N2", "a mesh that synchronises nothing");
  expect_caught(
      {"N2", "a 1 x n mesh synchronises nothing", with_strategy(Strategy::hybrid, ranks()), store_bug<SilentStore>()});
  expect_caught(
      {"N2", "an n x 1 mesh synchronises nothing", with_strategy(Strategy::hybrid, 1), store_bug<SilentStore>()});
  expect_caught({"N2", "replicas synchronise nothing", copies, store_bug<SilentStore>()});
  expect_caught(
      {"N2", "only the exchange between replicas is missing", with_strategy(Strategy::hybrid, 1),
       schedule_bug([](Schedule& schedule) { remove_operations(schedule, of_kind(OperationKind::finish)); })});
}

TEST(Mutations, N3SumsAreNotAverages) {
  expect_caught({"N3", "gradients are averaged over micro-steps", full,
                 bucket_bug([](const GradientPlace&, std::span<float> bucket) {
                   scale(bucket, 1.0 / static_cast<double>(micro_steps()));
                 })});
  if (ranks() == 1) return note_not_here("N3", "gradients are averaged over ranks");
  expect_caught({"N3", "gradients are averaged over ranks", full,
                 bucket_bug([](const GradientPlace&, std::span<float> bucket) { scale(bucket, 1.0 / ranks()); })});
}

TEST(Mutations, N4EveryMicroStepCounts) {
  const Setting hybrid = with_strategy(Strategy::hybrid, ranks() % 2 == 0 ? 2 : ranks());
  GradientEditor::Edits last_only;
  last_only.before_unit = [](const GradientPlace& at, const OptimizerShard& shard) {
    if (at.micro_step + 1 == micro_steps()) std::ranges::fill(shard.grad, 0.0F);
  };
  expect_caught({"N4", "only the last micro-step's gradient is kept", hybrid, store_bug<GradientEditor>(last_only)});
  const auto without = [](std::int64_t micro_step) {
    return bucket_bug([=](const GradientPlace& at, std::span<float> bucket) {
      if (at.micro_step == micro_step) scale(bucket, 0);
    });
  };
  expect_caught({"N4", "the last micro-step's gradient is dropped", full, without(micro_steps() - 1)});
  expect_caught({"N4", "the first micro-step's gradient is dropped", full, without(0)});
  expect_caught({"N4",
                 "the last micro-step is not reduced",
                 full,
                 schedule_bug([](Schedule& schedule) {
                   remove_operations(schedule, [](const Operation& operation) {
                     return operation.kind == OperationKind::reduce &&
                            operation.micro_step + 1 == static_cast<std::size_t>(micro_steps());
                   });
                 }),
                 {"has no free slot"}});
  const Setting local = and_also(full, "reduced once a step", [](Experiment& e) {
    e.config.parallel.reduce_each_micro_step = false;
    e.against_plain_run = true;
  });
  expect_caught({"N4", "the new gradient replaces the rank's own sum", local,
                 bucket_bug([](const GradientPlace& at, std::span<float> bucket) {
                   if (at.micro_step + 1 < micro_steps()) scale(bucket, 0);
                 })});
}

TEST(Mutations, N5TheMeanIsOverAllTokens) {
  expect_caught({"N5", "the mean of the micro-batches' means", full,
                 bucket_bug([](const GradientPlace& at, std::span<float> bucket) {
                   const auto own = static_cast<double>(own_tokens(at));
                   const double batches = static_cast<double>(small_run().train.global_batch);
                   if (own > 0) scale(bucket, static_cast<double>(tokens_of_step(at.step)) / (batches * own));
                 })});
  expect_caught({"N5",
                 "a rank without labelled tokens divides by their number",
                 full,
                 bucket_bug([](const GradientPlace& at, std::span<float> bucket) {
                   scale(bucket, own_tokens(at) > 0 ? 1 : std::numeric_limits<double>::quiet_NaN());
                 }),
                 {"training has diverged"}});
}

// One element of the last rank's gradient is infinite in step 2.
class InfiniteGradient : public GradientEditor {
 public:
  explicit InfiniteGradient(WeightStore& real_store) : GradientEditor(real_store, {.bucket = spoil}) {}

 private:
  static void spoil(const GradientPlace& at, std::span<float> bucket) {
    if (at.step == 2 && at.micro_step == 0 && at.unit == 1 && on_last_rank())
      bucket.front() = std::numeric_limits<float>::infinity();
  }
};

// The owner of the infinite element does not say so.
class HiddenInfinity final : public InfiniteGradient {
 public:
  using InfiniteGradient::InfiniteGradient;
  [[nodiscard]] FlatRange counted_range(std::size_t unit) const override {
    const FlatRange own = real().counted_range(unit);
    const OptimizerShard shard = real().optimizer_shard(unit);
    const bool finite = std::ranges::all_of(shard.grad, [](float value) { return std::isfinite(value); });
    return finite ? own : FlatRange{own.begin, own.begin};
  }
};

// The first rank changes its weights in the step that all skip.
class UpdatesAlone final : public InfiniteGradient {
 public:
  using InfiniteGradient::InfiniteGradient;
  void clear_gradients() override {
    if (++step_ == 3 && judges().rank() == 0) {
      for (float& weight : real().optimizer_shard(0).param.first(12)) weight *= 0.999F;
    }
    InfiniteGradient::clear_gradients();
  }

 private:
  std::int64_t step_ = 0;
};

TEST(Mutations, N6AllRanksRefuseANonFiniteGradientTogether) {
  Experiment experiment;
  store_bug<InfiniteGradient>()(experiment);
  for (const Observation& rank : observe(experiment)) {
    EXPECT_NE(rank.error.find("step 2: loss"), std::string::npos) << rank.error;
    EXPECT_NE(rank.error.find("the weights were not updated"), std::string::npos) << rank.error;
  }
}

TEST(Mutations, N6TheFlagReachesEverybody) {
  const Setting skipping = and_also(full, "skipping step 2", [](Experiment& e) {
    store_bug<InfiniteGradient>()(e);
    e.config.train.skip_nonfinite = true;
    e.skipped = {2};
  });
  expect_caught({"N6", "an infinite gradient is not flagged by its owner", skipping, store_bug<HiddenInfinity>()});
  expect_caught({"N6", "one rank updates in a step that all skip", skipping, store_bug<UpdatesAlone>()});
}

float as_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) & 0xFFFF0000U);
}

GradientEditor::Edits bf16_sums() {
  GradientEditor::Edits edits;
  edits.after_unit = [](const GradientPlace&, const OptimizerShard& shard) {
    std::ranges::transform(shard.grad, shard.grad.begin(), as_bf16);
  };
  return edits;
}

TEST(Mutations, N7SumsAreNotRounded) {
  expect_caught({"N7", "sums are kept in bf16", full, store_bug<GradientEditor>(bf16_sums())});
}

// This rank's sums after 1 and then, in 1024 micro-steps, 2^-9 of every rank.
std::vector<float> sums_of_small_gradients(WeightStore& store) {
  store.clear_gradients();
  for (int micro_step = 0; micro_step <= 1024; ++micro_step) {
    std::ranges::fill(store.gradient(0, 0), micro_step == 0 ? 1.0F : std::ldexp(1.0F, -9));
    store.reduce(0, 0, {0, store.layout(0).padded_elements()}, true);
  }
  const std::span<float> own =
      store.optimizer_shard(0).grad.first(static_cast<std::size_t>(store.counted_range(0).length()));
  return {own.begin(), own.end()};
}

TEST(Mutations, N7ManySmallGradientsSumExactly) {
  TrainingWorld training(judges(), small_model("tied"), small_run());
  const float expected = 3.0F * static_cast<float>(ranks());
  EXPECT_THAT(sums_of_small_gradients(training.store()), testing::Each(expected));
  GradientEditor rounded(training.store(), bf16_sums());
  EXPECT_THAT(sums_of_small_gradients(rounded), testing::Each(testing::Lt(expected)));
}

}  // namespace
}  // namespace lamina::test
