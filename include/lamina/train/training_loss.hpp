// What a run minimises, as the model takes it.
#pragma once

#include <lamina/config/run_config.hpp>
#include <lamina/ops/ops.hpp>

namespace lamina {

[[nodiscard]] inline LossTerms training_loss(const TrainSection& train) {
  return {.label_smoothing = train.label_smoothing, .z_loss = train.z_loss};
}

}  // namespace lamina
