#include <cmath>

#include <lamina/base/check.hpp>
#include <lamina/base/checked_product.hpp>
#include <lamina/base/error.hpp>
#include <lamina/config/drift_keys.hpp>
#include <lamina/config/parameter_groups.hpp>
#include <lamina/config/step_range.hpp>
#include <lamina/config/validate.hpp>
#include <lamina/config/warmup_steps.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

class Problems {
 public:
  void unless(bool sound, const std::string& problem, const std::string& why, const std::string& fix) {
    if (!sound) lines_.push_back(one_line(problem, why, fix));
  }
  void add(std::string line) { lines_.push_back(std::move(line)); }
  [[nodiscard]] std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

void at_least(Problems& problems, const char* name, std::int64_t value, std::int64_t lowest) {
  problems.unless(value >= lowest, fmt::format("{} is {}", name, value), fmt::format("it must be at least {}", lowest),
                  fmt::format("set {} to {} or more", name, lowest));
}

void check_presence(Problems& problems, const RunConfig& config, NeedsData needs_data) {
  problems.unless(!config.run.dir.empty(), "run.dir is empty", "the run has nowhere to write",
                  "set run.dir to a folder");
  problems.unless(!config.run.resume.empty(), "run.resume is empty", "it must be auto, never or a checkpoint",
                  "set run.resume to auto");
  problems.unless(!config.run.overwrite || config.run.resume == "never",
                  fmt::format("run.overwrite is yes but run.resume is {}", config.run.resume),
                  "a run that goes on overwrites nothing",
                  "set run.resume to never to begin anew, or leave run.overwrite out");
  problems.unless(!config.model.path.empty(), "model.path is empty", "the run needs a model",
                  "set model.path to a Hugging Face folder");
  problems.unless(needs_data == NeedsData::no || !config.data.train.empty(), "data.train is empty",
                  "the run needs training data", "set data.train to a token file, a .txt or a .jsonl file");
  problems.unless(!config.data.tokenizer.empty(), "data.tokenizer is empty", "it must be auto, byte or a path",
                  "set data.tokenizer to auto");
  problems.unless(config.train.eval_every == 0 || !config.data.validation.empty(),
                  fmt::format("train.eval_every is {} but data.validation is empty", config.train.eval_every),
                  "there is nothing to validate on", "set data.validation to a file, or train.eval_every to 0");
}

void check_ranges(Problems& problems, const RunConfig& config) {
  problems.unless(config.run.deadline_s > 0, fmt::format("run.deadline_s is {}", config.run.deadline_s),
                  "a wait must be allowed some time", "set run.deadline_s to some seconds, such as 600");
  problems.unless(config.run.local_deadline_s > 0,
                  fmt::format("run.local_deadline_s is {}", config.run.local_deadline_s),
                  "files must be allowed some time", "set run.local_deadline_s to some seconds, such as 3600");
  at_least(problems, "run.pretend_nodes", config.run.pretend_nodes, 0);
  at_least(problems, "data.seq_len", config.data.seq_len, 1);
  at_least(problems, "train.steps", config.train.steps, 1);
  at_least(problems, "train.global_batch", config.train.global_batch, 1);
  at_least(problems, "train.micro_batch", config.train.micro_batch, 1);
  at_least(problems, "train.eval_every", config.train.eval_every, 0);
  at_least(problems, "train.eval_sequences", config.train.eval_sequences, 0);
  at_least(problems, "train.log_every", config.train.log_every, 1);
  at_least(problems, "train.stop_at", config.train.stop_at, 0);
  at_least(problems, "checkpoint.every", config.checkpoint.every, 0);
  const double minutes = config.checkpoint.minutes;
  problems.unless(minutes >= 0 && std::isfinite(minutes), fmt::format("checkpoint.minutes is {}", minutes),
                  "it must be at least 0", "set checkpoint.minutes, such as 30, or to 0 for none by time");
  at_least(problems, "checkpoint.keep", config.checkpoint.keep, 0);
  at_least(problems, "compute.threads", config.compute.threads, 1);
  at_least(problems, "parallel.shard_size", config.parallel.shard_size, 0);
  problems.unless(config.parallel.prefetch >= 0 && config.parallel.prefetch <= 3,
                  fmt::format("parallel.prefetch is {}", config.parallel.prefetch), "it must be from 0 to 3",
                  "set parallel.prefetch to 1");
  problems.unless(config.parallel.prefetch_backward >= -1 && config.parallel.prefetch_backward <= 3,
                  fmt::format("parallel.prefetch_backward is {}", config.parallel.prefetch_backward),
                  "it must be from 0 to 3, or -1 for parallel.prefetch", "set parallel.prefetch_backward to -1");
  problems.unless(config.parallel.bucket_mb > 0, fmt::format("parallel.bucket_mb is {}", config.parallel.bucket_mb),
                  "a bucket holds something", "set parallel.bucket_mb, such as 25; a large number means whole units");
  problems.unless(config.parallel.reduce_each_micro_step || config.reduction.order != ReductionOrder::rank,
                  "parallel.reduce_each_micro_step is no and reduction.order is rank",
                  "gradients that are first summed over micro-steps are not added in rank order",
                  "leave one of the two out");
}

void check_drift_keys(Problems& problems, const RunConfig& config) {
  try {
    static_cast<void>(parse_drift_keys(config.run.allow_drift));
  } catch (const UsageError& error) {
    problems.add(error.what());
  }
}

void check_loss(Problems& problems, const TrainSection& train) {
  problems.unless(train.label_smoothing >= 0 && train.label_smoothing < 1,
                  fmt::format("train.label_smoothing is {}", train.label_smoothing),
                  "it must be at least 0 and below 1", "set train.label_smoothing within, such as 0.1");
  problems.unless(train.z_loss >= 0 && std::isfinite(train.z_loss), fmt::format("train.z_loss is {}", train.z_loss),
                  "it must be at least 0", "set train.z_loss to a small number such as 1e-4, or to 0 for none");
}

// An option that the chosen kind does not read must have its default: nothing is ignored in silence.
void check_optimizer_kind(Problems& problems, const OptimSection& o) {
  const OptimSection unset;
  const bool sgd = o.kind == OptimizerKind::sgd;
  const auto unread = [&](const char* name, double value, double fallback, const char* readers) {
    problems.unless(value == fallback, fmt::format("{} is {}", name, value),
                    fmt::format("only optim.kind = {} reads it", readers), fmt::format("remove {}", name));
  };
  if (sgd) {
    unread("optim.beta1", o.beta1, unset.beta1, "adamw, adam, lion or muon");
    unread("optim.beta2", o.beta2, unset.beta2, "adamw, adam, lion or muon");
  } else {
    unread("optim.momentum", o.momentum, unset.momentum, "sgd");
    problems.unless(!o.nesterov, "optim.nesterov is yes", "only optim.kind = sgd reads it",
                    "set optim.nesterov to no, or optim.kind to sgd");
  }
  if (sgd || o.kind == OptimizerKind::lion) unread("optim.eps", o.eps, unset.eps, "adamw, adam or muon");
  if (o.kind != OptimizerKind::muon) {
    unread("optim.muon_momentum", o.muon_momentum, unset.muon_momentum, "muon");
    problems.unless(o.muon_nesterov, "optim.muon_nesterov is no", "only optim.kind = muon reads it",
                    "remove optim.muon_nesterov");
    problems.unless(o.muon_adjust_lr == unset.muon_adjust_lr, "optim.muon_adjust_lr is original",
                    "only optim.kind = muon reads it", "remove optim.muon_adjust_lr");
  }
  problems.unless(o.muon_momentum >= 0 && o.muon_momentum < 1,
                  fmt::format("optim.muon_momentum is {}", o.muon_momentum), "it must be at least 0 and below 1",
                  "set optim.muon_momentum within, such as 0.95");
  problems.unless(o.momentum >= 0 && o.momentum < 1, fmt::format("optim.momentum is {}", o.momentum),
                  "it must be at least 0 and below 1", "set optim.momentum within, such as 0.9");
  problems.unless(!sgd || !o.nesterov || o.momentum > 0, "optim.nesterov is yes but optim.momentum is 0",
                  "there is no momentum to look ahead with", "set optim.momentum, such as 0.9");
  try {
    static_cast<void>(parse_parameter_groups(o.groups));
  } catch (const UsageError& error) {
    problems.add(error.what());
  }
}

void check_optim(Problems& problems, const RunConfig& config) {
  const OptimSection& o = config.optim;
  check_optimizer_kind(problems, o);
  problems.unless(o.lr > 0, fmt::format("optim.lr is {}", o.lr), "a learning rate is above 0",
                  "set optim.lr, such as 3e-4");
  problems.unless(o.min_lr >= 0 && o.min_lr <= o.lr, fmt::format("optim.min_lr is {}", o.min_lr),
                  fmt::format("it must be from 0 to optim.lr = {}", o.lr), "set optim.min_lr within");
  for (const auto& [name, beta] : {std::pair{"optim.beta1", o.beta1}, {"optim.beta2", o.beta2}}) {
    problems.unless(beta >= 0 && beta < 1, fmt::format("{} is {}", name, beta), "it must be at least 0 and below 1",
                    fmt::format("set {} within", name));
  }
  problems.unless(o.eps > 0, fmt::format("optim.eps is {}", o.eps), "it must be above 0",
                  "set optim.eps, such as 1e-8");
  problems.unless(o.weight_decay >= 0, fmt::format("optim.weight_decay is {}", o.weight_decay), "it must be at least 0",
                  "set optim.weight_decay to 0 for none");
  problems.unless(o.grad_clip >= 0, fmt::format("optim.grad_clip is {}", o.grad_clip), "it must be at least 0",
                  "set optim.grad_clip to 0 for none");
  problems.unless(o.ema_decay >= 0 && o.ema_decay < 1, fmt::format("optim.ema_decay is {}", o.ema_decay),
                  "it must be at least 0 and below 1", "set optim.ema_decay to 0 for none, or such as 0.999");
  const double w = o.warmup;
  problems.unless(w >= 0 && (w < 1 || w == std::floor(w)), fmt::format("optim.warmup is {}", w),
                  "it is a number of steps, or below 1 a share of them", "set optim.warmup, such as 100 or 0.05");
  at_least(problems, "optim.decay", o.decay, 0);
  const std::int64_t steps = config.train.steps;
  problems.unless(!(w >= 1) || w <= static_cast<double>(steps), fmt::format("optim.warmup is {}", w),
                  fmt::format("the run has {} steps", steps),
                  "set optim.warmup to at most train.steps, or to a share of them such as 0.05");
  const bool wsd = o.schedule == ScheduleKind::wsd;
  problems.unless(wsd || o.decay == 0, fmt::format("optim.decay is {}", o.decay),
                  "only optim.schedule = wsd has a final decay", "set optim.decay to 0, or optim.schedule to wsd");
  const std::int64_t warmup = warmup_steps(o, steps);
  problems.unless(!wsd || warmup > steps || o.decay <= steps - warmup, fmt::format("optim.decay is {}", o.decay),
                  fmt::format("{} steps are left after a warm-up of {}", steps - warmup, warmup),
                  "lower optim.decay or optim.warmup, or set optim.decay to 0 for a fifth of all steps");
}

void check_timeline(Problems& problems, const RunConfig& config) {
  if (config.output.timeline.empty()) return;
  try {
    const StepRange range = parse_step_range(config.output.timeline, "output.timeline");
    problems.unless(range.last <= config.train.steps, fmt::format("output.timeline is {}", config.output.timeline),
                    fmt::format("the run has {} steps", config.train.steps), "choose steps of the run");
  } catch (const UsageError& error) {
    problems.add(error.what());
  }
}

// Whether what the run counts (samples, tokens of a step, tokens in all) stays below 2^63.
bool check_counts(Problems& problems, const RunConfig& config) {
  const std::int64_t global = config.train.global_batch, length = config.data.seq_len;
  const auto countable = [&](std::initializer_list<std::int64_t> sizes, const std::string& problem,
                             const std::string& why, const std::string& fix) {
    const bool fits = checked_product(sizes).has_value();
    problems.unless(fits, problem, why + " cannot be counted (2^63 and more)", fix);
    return fits;
  };
  if (length < 1 || config.train.steps < 1) return false;  // told already
  return countable({global, length, sizeof(float)}, fmt::format("train.global_batch is {}", global),
                   fmt::format("so many sequences of data.seq_len = {} tokens", length), "lower train.global_batch") &&
         countable({config.train.steps, global, length}, fmt::format("train.steps is {}", config.train.steps),
                   fmt::format("the tokens of so many steps of {} x {}", global, length), "lower train.steps") &&
         countable({config.train.eval_sequences, length},
                   fmt::format("train.eval_sequences is {}", config.train.eval_sequences),
                   "the tokens of so many sequences", "lower train.eval_sequences");
}

void check_batch(Problems& problems, const RunConfig& config, std::int64_t ranks) {
  const std::int64_t global = config.train.global_batch, micro = config.train.micro_batch;
  if (global < 1 || micro < 1) return;  // told already
  if (!check_counts(problems, config)) return;
  if (ranks > global) {
    problems.unless(false, fmt::format("{} ranks but train.global_batch is {}", ranks, global),
                    "some ranks would have no sequence",
                    fmt::format("start at most {} ranks, or raise train.global_batch", global));
    return;
  }
  const bool fits = micro <= global / ranks && global % (ranks * micro) == 0;
  problems.unless(fits, fmt::format("train.global_batch is {}", global),
                  fmt::format("it must be a multiple of ranks x train.micro_batch = {} x {}", ranks, micro),
                  "change train.global_batch, train.micro_batch or the number of ranks");
}

}  // namespace

std::vector<std::string> config_problems(const RunConfig& config, std::int64_t world_size, NeedsData needs_data) {
  require(world_size >= 1, "a world has at least one rank");
  Problems problems;
  check_presence(problems, config, needs_data);
  check_ranges(problems, config);
  check_drift_keys(problems, config);
  check_loss(problems, config.train);
  check_optim(problems, config);
  check_batch(problems, config, world_size);
  check_timeline(problems, config);
  const std::int64_t nodes = config.run.pretend_nodes;
  problems.unless(nodes <= 0 || world_size % nodes == 0, fmt::format("run.pretend_nodes is {}", nodes),
                  fmt::format("{} ranks do not split into so many equal nodes", world_size),
                  "set run.pretend_nodes to a divisor of the number of ranks, or to 0");
  return problems.take();
}

void check_config(const RunConfig& config, std::int64_t world_size, NeedsData needs_data) {
  const std::vector<std::string> problems = config_problems(config, world_size, needs_data);
  if (!problems.empty()) throw UsageError(fmt::format("{}", fmt::join(problems, "\n")));
}

}  // namespace lamina
