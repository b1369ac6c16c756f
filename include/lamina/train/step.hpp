// One optimizer step: micro-steps on streams, the one all-reduce of the step, clipping, update; and evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <lamina/config/run_config.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/model/model_runner.hpp>
#include <lamina/mpi/communicator.hpp>
#include <lamina/ops/ops.hpp>
#include <lamina/optim/optimizer.hpp>
#include <lamina/schedule/overlap.hpp>
#include <lamina/schedule/step_schedule.hpp>
#include <lamina/schedule/streams.hpp>
#include <lamina/shard/weight_store.hpp>
#include <lamina/topology/mesh.hpp>

namespace lamina {

// Sequences [first, first + count) of a global order, as a micro-batch. The views are valid until the next call. Beyond
// the last sequence (evaluation only): rows without labels.
using LoadBatch = std::function<MicroBatch(std::uint64_t first, std::int64_t count)>;

// How a global batch is cut: micro-batch m of a step holds sequences [m*micro_batch, (m+1)*micro_batch) of the step;
// rank r computes micro-batch a*ranks + r in micro-step a. The list of micro-batches does not depend on the number of
// ranks.
struct BatchPlan {
  std::int64_t global_batch = 0;
  std::int64_t micro_batch = 0;
  std::int64_t ranks = 1;
  [[nodiscard]] std::int64_t micro_steps() const { return global_batch / (micro_batch * ranks); }
};

// What this rank wants to be done after the step. One rank's wish is enough.
struct StepWishes {
  StepWishes(bool stop_ = false, bool save_ = false) : stop(stop_), save(save_) {}
  bool stop, save;
};

struct StepResult {
  std::int64_t step = 0;
  double loss = 0;       // mean over the labelled tokens of the global batch; NaN without any
  double grad_norm = 0;  // of the mean gradient, before clipping
  double clip = 1;       // coefficient applied
  double lr = 0;
  std::int64_t tokens = 0;        // labelled
  bool stop_wanted = false;       // some rank was asked to stop
  bool save_wanted = false;       // some rank wants a checkpoint
  std::optional<double> overlap;  // part of the communication hidden behind computation, over all ranks; none on one
                                  // rank
  bool skipped = false;           // no update (skipped_steps.hpp)
  bool no_labels = false;         // skipped because no token of the global batch has a label
};

// References that a trainer's parts share. All outlive it.
struct TrainContext {
  const RunConfig& config;
  const ModelPlan& plan;
  const mpi::Communicator& world;
  Ops& ops;
  ModelRunner& runner;
  WeightStore& store;
  const StorePlan& store_plan;  // the store's
  const Mesh& mesh;             // likewise
  const Optimizer& optimizer;
};

struct EvaluationResult {
  double loss = 0;  // NaN without labels
  std::int64_t tokens = 0;
};

// When the parts of a step ran on this rank, in seconds of the steady clock.
struct StepTrace {
  std::span<const Operation> operations;  // the step's schedule
  std::span<const Interval> intervals;    // of each
  double begin = 0;                       // of the step
  Interval exchange, update;              // the sums over all ranks; the optimizer
};

class StepEngine {
 public:
  // Plans the schedules and starts the streams. `context` and what it refers to must outlive the engine. Throws
  // UsageError (see training_shape).
  explicit StepEngine(const TrainContext& context);
  ~StepEngine();

  // Runs step `step` (1-based) on global_batch sequences from `first_sample`. `wishes`: this rank's.
  // `update`: the 1-based number of the optimizer's update, below `step` after skipped steps; `step` if left out. When
  // the loss or the norm is not finite, weights and moments stay as they were: with train.skip_nonfinite the result
  // says `skipped`, else AgreedError (data) is thrown. Nor does a step without labels change them. `load` is called on
  // a thread of the engine's, for one micro-batch at a time. Collective.
  [[nodiscard]] StepResult run(const LoadBatch& load, std::int64_t step, std::uint64_t first_sample, StepWishes wishes,
                               std::optional<std::int64_t> update = {});

  // Mean loss over sequences [0, sequences). The same bits for every world size. Collective.
  [[nodiscard]] EvaluationResult evaluate(const LoadBatch& load, std::int64_t sequences);

  // Of the last step; valid until the next call.
  [[nodiscard]] StepTrace trace() const;

  // For tests: see streams.hpp.
  void set_hooks(StreamHooks hooks);
  void set_schedule(std::vector<Operation> schedule);
  [[nodiscard]] const ScheduleShape& shape() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lamina
