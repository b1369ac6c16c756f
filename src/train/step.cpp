#include "step_work.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/base/steady_clock.hpp>
#include <lamina/optim/gradient_scale.hpp>
#include <lamina/optim/lr_schedule.hpp>
#include <lamina/train/order_check.hpp>
#include <lamina/train/skipped_steps.hpp>
#include <lamina/train/step.hpp>
#include <lamina/train/step_plan.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

// What the ranks add up, exactly, in one message.
struct StepSums {
  ExactSum loss, squares;
  std::int64_t tokens = 0;
  std::int64_t stops = 0, saves = 0;
  std::int64_t communication_ns = 0, hidden_ns = 0;

  void over(const mpi::Communicator& world) {
    std::vector<std::int64_t> words;
    for (ExactSum* sum : {&loss, &squares}) {
      sum->normalise();
      words.insert(words.end(), sum->words().begin(), sum->words().end());
    }
    words.insert(words.end(), {tokens, stops, saves, communication_ns, hidden_ns});
    world.sum(words, "the sums of the step");
    auto next = words.cbegin();
    for (ExactSum* sum : {&loss, &squares}) {
      for (std::int64_t& word : sum->words()) word = *next++;
    }
    for (std::int64_t* word : {&tokens, &stops, &saves, &communication_ns, &hidden_ns}) *word = *next++;
  }
};

double mean_loss(const StepSums& sums) {
  return sums.tokens > 0 ? sums.loss.value() / static_cast<double>(sums.tokens)
                         : std::numeric_limits<double>::quiet_NaN();
}

// Says in the error of a wait that has ended what the rank was about.
template <typename Work>
void naming_lost_peers(const std::string& what, const Work& work) {
  try {
    work();
  } catch (const PeerError& error) {
    throw PeerError(what + ": " + error.what());
  }
}

// A schedule with what executes it.
struct Pass {
  Pass(const TrainContext& context, ScheduleShape shape_)
      : shape(std::move(shape_)),
        program(step_schedule(shape)),
        work(context.plan, context.runner, context.store, shape, context.world.patience()) {}
  ScheduleShape shape;
  Program program;
  StepWork work;
};

BatchPlan batches_of(const TrainContext& context) {
  return {context.config.train.global_batch, context.config.train.micro_batch, context.world.size()};
}

}  // namespace

class StepEngine::Impl {
 public:
  explicit Impl(const TrainContext& context)
      : context_(context),
        batches_(batches_of(context)),
        streams_(context.config.parallel.overlap),
        training_(context, training_shape(context.plan, context.store_plan, context.mesh, batches_.micro_steps(),
                                          context.config.parallel.overlap)),
        evaluation_(context,
                    evaluation_shape(context.plan, context.store_plan, context.mesh, context.config.parallel.overlap)) {
  }

  StepResult run(const LoadBatch& load, std::int64_t step, std::uint64_t first_sample, StepWishes wishes,
                 std::optional<std::int64_t> update) {
    StepSums sums;
    sums.stops = wishes.stop ? 1 : 0;
    sums.saves = wishes.save ? 1 : 0;
    run_micro_steps(load, step, first_sample, sums);
    trace_.exchange.start = steady_seconds();
    add_gradient_squares(context_.store, context_.ops, sums.squares);
    naming_lost_peers(fmt::format("step {}, exchange", step), [&] { exchange(sums); });
    trace_.exchange.end = steady_seconds();

    const GradientScale scale = gradient_scale(sums.squares.value(), sums.tokens, context_.config.optim.grad_clip);
    StepResult result;
    result.step = step;
    result.tokens = sums.tokens;
    result.loss = mean_loss(sums);
    result.grad_norm = scale.norm;
    result.clip = scale.clip;
    result.lr = learning_rate(context_.config.optim, step, context_.config.train.steps);
    result.stop_wanted = sums.stops > 0;
    result.save_wanted = sums.saves > 0;
    if (context_.world.size() > 1 && sums.communication_ns > 0)
      result.overlap = static_cast<double>(sums.hidden_ns) / static_cast<double>(sums.communication_ns);
    result.no_labels = sums.tokens == 0 && std::isfinite(scale.norm);  // a diverged model is told as such
    result.skipped = leaves_out_update(context_.config.train, result);
    trace_.update.start = steady_seconds();
    if (!result.skipped) {
      naming_lost_peers(fmt::format("step {}, update", step), [&] {
        context_.optimizer.update(context_.store, context_.ops, {update.value_or(step), result.lr, scale.scale});
      });
    }
    trace_.update.end = steady_seconds();
    return result;
  }

  EvaluationResult evaluate(const LoadBatch& load, std::int64_t sequences) {
    const std::int64_t ranks = batches_.ranks, micro_batch = batches_.micro_batch;
    const std::int64_t batches = (sequences + micro_batch - 1) / micro_batch;
    const std::int64_t rounds = (batches + ranks - 1) / ranks;
    StepSums sums;
    for (std::int64_t round = 0; round < rounds; ++round) {
      // Ranks beyond the last batch compute rows without labels: every rank takes part in every gather.
      const std::int64_t index = round * ranks + context_.world.rank();
      evaluation_.work.begin(
          [&](std::size_t) { return load(static_cast<std::uint64_t>(index * micro_batch), micro_batch); },
          fmt::format("evaluation, round {}", round + 1));
      streams_.run(evaluation_.program, evaluation_.work);
      sums.loss.add(evaluation_.work.loss());
      sums.tokens += evaluation_.work.tokens();
    }
    naming_lost_peers("evaluation, exchange", [&] { exchange(sums); });
    return {mean_loss(sums), sums.tokens};
  }

  [[nodiscard]] StepTrace trace() const { return trace_; }
  void set_hooks(StreamHooks hooks) { streams_.set_hooks(std::move(hooks)); }
  void set_schedule(std::vector<Operation> schedule) { training_.program = Program(std::move(schedule)); }
  [[nodiscard]] const ScheduleShape& shape() const { return training_.shape; }

 private:
  // Of the sums, and of the order in which collectives were called since the last exchange.
  void exchange(StepSums& sums) {
    sums.over(context_.world);
    check_collective_order(context_.world, context_.store.collective_order(),
                           [&](std::size_t unit) { return context_.store.layout(unit).unit().name; });
    context_.store.clear_collective_order();
  }

  void run_micro_steps(const LoadBatch& load, std::int64_t step, std::uint64_t first_sample, StepSums& sums) {
    trace_.begin = steady_seconds();
    context_.store.clear_gradients();
    training_.work.begin(
        [&](std::size_t micro_step) {
          const std::int64_t index = static_cast<std::int64_t>(micro_step) * batches_.ranks + context_.world.rank();
          return load(first_sample + static_cast<std::uint64_t>(index * batches_.micro_batch), batches_.micro_batch);
        },
        fmt::format("step {}", step));
    streams_.run(training_.program, training_.work);
    sums.loss.add(training_.work.loss());
    sums.tokens += training_.work.tokens();
    trace_.operations = training_.program.operations();
    trace_.intervals = streams_.intervals();
    const Overlap overlap = overlap_of(trace_.operations, trace_.intervals);
    sums.communication_ns = std::llround(1e9 * overlap.communication);
    sums.hidden_ns = std::llround(1e9 * overlap.hidden);
  }

  TrainContext context_;
  BatchPlan batches_;
  Streams streams_;
  Pass training_, evaluation_;
  StepTrace trace_;
};

StepEngine::StepEngine(const TrainContext& context) : impl_(std::make_unique<Impl>(context)) {}
StepEngine::~StepEngine() = default;
StepResult StepEngine::run(const LoadBatch& load, std::int64_t step, std::uint64_t first_sample, StepWishes wishes,
                           std::optional<std::int64_t> update) {
  return impl_->run(load, step, first_sample, wishes, update);
}
EvaluationResult StepEngine::evaluate(const LoadBatch& load, std::int64_t sequences) {
  return impl_->evaluate(load, sequences);
}
StepTrace StepEngine::trace() const { return impl_->trace(); }
void StepEngine::set_hooks(StreamHooks hooks) { impl_->set_hooks(std::move(hooks)); }
void StepEngine::set_schedule(std::vector<Operation> schedule) { impl_->set_schedule(std::move(schedule)); }
const ScheduleShape& StepEngine::shape() const { return impl_->shape(); }

}  // namespace lamina
