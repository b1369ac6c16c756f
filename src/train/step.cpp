#include <vector>

#include <lamina/optim/gradient_scale.hpp>
#include <lamina/optim/lr_schedule.hpp>
#include <lamina/train/micro_step.hpp>
#include <lamina/train/order_check.hpp>
#include <lamina/train/skipped_steps.hpp>
#include <lamina/train/step.hpp>

namespace lamina {

namespace {

// What the ranks add up, exactly, in one message.
struct StepSums {
  ExactSum loss, squares;
  std::int64_t tokens = 0;
  std::int64_t stops = 0;

  void over(const mpi::Communicator& world) {
    std::vector<std::int64_t> words;
    for (ExactSum* sum : {&loss, &squares}) {
      sum->normalise();
      words.insert(words.end(), sum->words().begin(), sum->words().end());
    }
    words.insert(words.end(), {tokens, stops});
    world.sum(words, "the sums of the step");
    auto next = words.cbegin();
    for (ExactSum* sum : {&loss, &squares}) {
      for (std::int64_t& word : sum->words()) word = *next++;
    }
    tokens = *next++;
    stops = *next;
  }
};

}  // namespace

StepResult run_step(const TrainContext& context, const LoadBatch& load, std::int64_t step, std::uint64_t first_sample,
                    bool stop_wanted, std::optional<std::int64_t> update) {
  const TrainSection& train = context.config.train;
  const BatchPlan batches{train.global_batch, train.micro_batch, context.world.size()};
  StepSums sums;
  sums.stops = stop_wanted ? 1 : 0;
  context.store.clear_gradients();
  for (std::int64_t micro = 0; micro < batches.micro_steps(); ++micro) {
    const std::int64_t index = micro * batches.ranks + context.world.rank();
    const MicroBatch batch =
        load(first_sample + static_cast<std::uint64_t>(index * batches.micro_batch), batches.micro_batch);
    run_micro_step(context.plan, context.runner, context.store, batch);
    sums.loss.add(context.runner.loss_sum());
    sums.tokens += context.runner.labelled_tokens();
  }
  context.store.finish_gradients();
  add_gradient_squares(context.store, context.ops, sums.squares);
  sums.over(context.world);
  check_collective_order(context.world, context.store.collective_order(),
                         [&](std::size_t unit) { return context.store.layout(unit).unit().name; });

  const GradientScale scale = gradient_scale(sums.squares.value(), sums.tokens, context.config.optim.grad_clip);
  StepResult result;
  result.step = step;
  result.tokens = sums.tokens;
  result.loss = sums.tokens > 0 ? sums.loss.value() / static_cast<double>(sums.tokens) : 0.0;
  result.grad_norm = scale.norm;
  result.clip = scale.clip;
  result.lr = learning_rate(context.config.optim, step, train.steps);
  result.stop_wanted = sums.stops > 0;
  result.skipped = leaves_out_update(train, result);
  if (!result.skipped) {
    context.optimizer.update(context.store, context.ops, {update.value_or(step), result.lr, scale.scale});
  }
  return result;
}

EvaluationResult evaluate(const TrainContext& context, const LoadBatch& load, std::int64_t sequences) {
  const std::int64_t micro_batch = context.config.train.micro_batch;
  const std::int64_t ranks = context.world.size();
  const std::int64_t batches = (sequences + micro_batch - 1) / micro_batch;
  const std::int64_t rounds = (batches + ranks - 1) / ranks;
  StepSums sums;
  for (std::int64_t round = 0; round < rounds; ++round) {
    // Ranks beyond the last batch compute rows without labels: every rank takes part in every gather.
    const std::int64_t index = round * ranks + context.world.rank();
    run_evaluation(context.plan, context.runner, context.store,
                   load(static_cast<std::uint64_t>(index * micro_batch), micro_batch));
    sums.loss.add(context.runner.loss_sum());
    sums.tokens += context.runner.labelled_tokens();
  }
  sums.over(context.world);
  EvaluationResult result;
  result.tokens = sums.tokens;
  result.loss = sums.tokens > 0 ? sums.loss.value() / static_cast<double>(sums.tokens) : 0.0;
  return result;
}

}  // namespace lamina
