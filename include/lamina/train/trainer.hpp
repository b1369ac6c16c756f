// The loop over steps: train, evaluate, log, save, stop.
#pragma once

#include <cstdint>
#include <functional>

#include <lamina/train/checkpointer.hpp>
#include <lamina/train/progress.hpp>
#include <lamina/train/step.hpp>

namespace lamina {

struct TrainData {
  LoadBatch train;
  LoadBatch validation;                   // may be empty
  std::int64_t validation_sequences = 0;  // how many evaluate() sees
};

enum class TrainEnd { finished, stopped_at, asked_to_stop };

// Runs from `state` to train.steps, train.stop_at, or until `stop_wanted` answers true on some rank at a step boundary;
// saves every checkpoint.every steps, every checkpoint.minutes (rank 0's clock decides) and at the end. Rank 0 writes
// metrics and progress. Updates `state`, also when it throws. Collective.
[[nodiscard]] TrainEnd train(const TrainContext& context, const TrainData& data, Checkpointer& checkpointer,
                             RunState& state, const std::function<bool()>& stop_wanted, const TerminalColumns& columns);

}  // namespace lamina
