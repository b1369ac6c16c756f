#include <algorithm>
#include <optional>

#include <lamina/base/log.hpp>
#include <lamina/base/slow_notice.hpp>
#include <lamina/base/steady_clock.hpp>
#include <lamina/base/text.hpp>
#include <lamina/train/metrics.hpp>
#include <lamina/train/progress.hpp>
#include <lamina/train/skipped_steps.hpp>
#include <lamina/train/timeline.hpp>
#include <lamina/train/trainer.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

class Trainer {
 public:
  Trainer(const TrainContext& context, const TrainData& data, Checkpointer& checkpointer, RunState& state,
          const TerminalColumns& columns)
      : context_(context),
        data_(data),
        checkpointer_(checkpointer),
        state_(state),
        progress_(train(), state.step + 1, columns) {
    context_.world.agree([&] { engine_.emplace(context_); }, "the plan of the steps");
    context_.world.agree(
        [&] {
          if (speaks()) metrics_.emplace(context_.config.run.dir, state_.step);
        },
        "the metrics file");
    if (!context_.config.output.timeline.empty()) {
      timeline_.emplace(context_.world, context_.plan, engine_->shape(),
                        parse_step_range(context_.config.output.timeline, "output.timeline"));
    }
  }

  TrainEnd run(const std::function<bool()>& stop_wanted) {
    TrainEnd end = TrainEnd::finished;
    while (state_.step < train().steps && end == TrainEnd::finished) {
      const StepResult result = one_step({stop_wanted(), save_is_due()});
      const bool last = state_.step == train().steps;
      if (!last && result.stop_wanted) end = TrainEnd::asked_to_stop;
      if (!last && state_.step == train().stop_at) end = TrainEnd::stopped_at;
      const std::int64_t every = context_.config.checkpoint.every;
      const bool by_steps = every > 0 && state_.step % every == 0;
      if (last || end != TrainEnd::finished || by_steps || result.save_wanted) save();
    }
    write_timeline();
    if (const std::string summary = progress_.summary(); speaks() && !summary.empty()) log_info(summary);
    if (speaks() && state_.skipped > 0)
      log_warn(fmt::format("{} of {} steps were skipped: loss or gradient norm not finite, or no labels",
                           state_.skipped, state_.step));
    return end;
  }

 private:
  [[nodiscard]] const TrainSection& train() const { return context_.config.train; }
  [[nodiscard]] bool speaks() const { return context_.world.rank() == 0; }

  // Numbers do not depend on when a run is saved, so one rank's clock may decide.
  [[nodiscard]] bool save_is_due() const {
    const double minutes = context_.config.checkpoint.minutes;
    return speaks() && minutes > 0 && steady_seconds() - saved_at_ >= 60 * minutes;
  }

  StepResult one_step(StepWishes wishes) {
    const double begin = steady_seconds();
    const StepResult result =
        engine_->run(data_.train, state_.step + 1, state_.next_sample, wishes, state_.updates + 1);
    if (timeline_) timeline_->add(result, engine_->trace());
    StepTimes times;
    times.step_s = steady_seconds() - begin;
    times.tok_s = static_cast<double>(train().global_batch * context_.config.data.seq_len) / times.step_s;
    state_.step = result.step;
    state_.next_sample += static_cast<std::uint64_t>(train().global_batch);
    state_.tokens_seen += static_cast<std::uint64_t>(result.tokens);
    count_update(result, state_);
    const std::optional<EvaluationResult> validation = validate_after(result.step);
    // A full disk must end all ranks, not leave them waiting for rank 0.
    context_.world.agree(
        [&] {
          if (speaks()) metrics_->append(metrics_line(result, times, validation));
        },
        "the step's metrics");
    if (speaks()) {
      progress_.step(result, times, validation);
      if (result.skipped) log_warn(skip_warning(result, state_));
    }
    if (timeline_ && timeline_->complete()) write_timeline();
    refuse_endless_skipping(state_);
    return result;
  }

  std::optional<EvaluationResult> validate_after(std::int64_t step) {
    if (train().eval_every == 0 || !data_.validation) return std::nullopt;
    if (step % train().eval_every != 0 && step != train().steps) return std::nullopt;
    const SlowNotice notice(fmt::format("step {}: evaluating on {} sequences", step, data_.validation_sequences));
    return engine_->evaluate(data_.validation, data_.validation_sequences);
  }

  // What has been noted and not written.
  void write_timeline() {
    if (!timeline_ || timeline_->empty()) return;
    const std::filesystem::path path = timeline_->write(context_.config.run.dir);
    if (speaks()) log_info(fmt::format("wrote {}", path.string()));
  }

  void save() {
    const double begin = steady_seconds();
    const SlowNotice notice(fmt::format("saving step {}", state_.step));
    state_.last_checkpoint = checkpointer_.save(state_);
    saved_at_ = steady_seconds();
    if (speaks())
      log_info(fmt::format("saved {} in {}", state_.last_checkpoint.string(), human_seconds(saved_at_ - begin)));
  }

  const TrainContext& context_;
  std::optional<StepEngine> engine_;
  const TrainData& data_;
  Checkpointer& checkpointer_;
  RunState& state_;
  Progress progress_;
  std::optional<MetricsFile> metrics_;
  std::optional<Timeline> timeline_;
  double saved_at_ = steady_seconds();  // or started
};

}  // namespace

TrainEnd train(const TrainContext& context, const TrainData& data, Checkpointer& checkpointer, RunState& state,
               const std::function<bool()>& stop_wanted, const TerminalColumns& columns) {
  return Trainer(context, data, checkpointer, state, columns).run(stop_wanted);
}

}  // namespace lamina
