#include <algorithm>
#include <chrono>
#include <optional>

#include <lamina/base/log.hpp>
#include <lamina/base/text.hpp>
#include <lamina/train/metrics.hpp>
#include <lamina/train/progress.hpp>
#include <lamina/train/skipped_steps.hpp>
#include <lamina/train/timeline.hpp>
#include <lamina/train/trainer.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class Trainer {
 public:
  Trainer(const TrainContext& context, const TrainData& data, Checkpointer& checkpointer, RunState& state,
          bool on_terminal)
      : context_(context),
        data_(data),
        checkpointer_(checkpointer),
        state_(state),
        progress_(train().steps, train().log_every, on_terminal) {
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
      const bool stop = one_step(stop_wanted());
      if (state_.step < train().steps && stop) end = TrainEnd::asked_to_stop;
      if (state_.step == train().stop_at && state_.step < train().steps) end = TrainEnd::stopped_at;
      const std::int64_t every = context_.config.checkpoint.every;
      if (state_.step == train().steps || end != TrainEnd::finished || (every > 0 && state_.step % every == 0)) save();
    }
    write_timeline();
    progress_.finish_line();
    if (const std::string summary = progress_.summary(); speaks() && !summary.empty()) log_info(summary);
    if (speaks() && state_.skipped > 0)
      log_warn(fmt::format("{} of {} steps were skipped: their loss or gradient norm was not finite", state_.skipped,
                           state_.step));
    return end;
  }

 private:
  [[nodiscard]] const TrainSection& train() const { return context_.config.train; }
  [[nodiscard]] bool speaks() const { return context_.world.rank() == 0; }

  // Returns whether some rank was asked to stop.
  bool one_step(bool stop_wanted) {
    const Clock::time_point begin = Clock::now();
    const StepResult result =
        engine_->run(data_.train, state_.step + 1, state_.next_sample, stop_wanted, state_.updates + 1);
    if (timeline_) timeline_->add(result, engine_->trace());
    StepTimes times;
    times.step_s = seconds_since(begin);
    times.tok_s = static_cast<double>(result.tokens) / times.step_s;
    state_.step = result.step;
    state_.next_sample += static_cast<std::uint64_t>(train().global_batch);
    state_.tokens_seen += static_cast<std::uint64_t>(result.tokens);
    count_update(result, state_);
    std::optional<EvaluationResult> validation;
    if (train().eval_every > 0 && data_.validation &&
        (result.step % train().eval_every == 0 || result.step == train().steps)) {
      validation = engine_->evaluate(data_.validation, data_.validation_sequences);
    }
    // A full disk must end all ranks, not leave them waiting for rank 0.
    context_.world.agree(
        [&] {
          if (speaks()) metrics_->append(metrics_line(result, times, validation));
        },
        "the step's metrics");
    if (speaks()) {
      progress_.step(result, times, validation);
      if (result.skipped) warn(skip_warning(result, state_));
    }
    if (timeline_ && timeline_->complete()) write_timeline();
    refuse_endless_skipping(state_);
    return result.stop_wanted;
  }

  // What has been noted and not written.
  void write_timeline() {
    if (!timeline_ || timeline_->empty()) return;
    const std::filesystem::path path = timeline_->write(context_.config.run.dir);
    progress_.finish_line();
    if (speaks()) log_info(fmt::format("wrote {}", path.string()));
  }

  void warn(const std::string& text) {
    progress_.finish_line();
    log_warn(text);
  }

  void save() {
    const Clock::time_point begin = Clock::now();
    const std::filesystem::path folder = checkpointer_.save(state_);
    progress_.finish_line();
    if (speaks()) log_info(fmt::format("saved {} in {}", folder.string(), human_seconds(seconds_since(begin))));
  }

  const TrainContext& context_;
  std::optional<StepEngine> engine_;
  const TrainData& data_;
  Checkpointer& checkpointer_;
  RunState& state_;
  Progress progress_;
  std::optional<MetricsFile> metrics_;
  std::optional<Timeline> timeline_;
};

}  // namespace

TrainEnd train(const TrainContext& context, const TrainData& data, Checkpointer& checkpointer, RunState& state,
               const std::function<bool()>& stop_wanted, bool on_terminal) {
  return Trainer(context, data, checkpointer, state, on_terminal).run(stop_wanted);
}

}  // namespace lamina
