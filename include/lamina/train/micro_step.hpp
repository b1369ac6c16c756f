// Forward and backward of one micro-batch over sharded weights: the order of gathers, computation and reductions.
#pragma once

#include <lamina/model/model_plan.hpp>
#include <lamina/model/model_runner.hpp>
#include <lamina/shard/weight_store.hpp>

namespace lamina {

// Forward, loss and backward. Each unit's summed gradient is reduced into the store's accumulators as soon as its last
// writer is done: one gather a use of a unit (step_plan.hpp), one reduction. Collective.
void run_micro_step(const ModelPlan& plan, ModelRunner& runner, WeightStore& store, const MicroBatch& batch);

// Forward and loss only. Collective.
void run_evaluation(const ModelPlan& plan, ModelRunner& runner, WeightStore& store, const MicroBatch& batch);

}  // namespace lamina
