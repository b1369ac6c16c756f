// What a run says at its end.
#pragma once

#include <string>

#include <lamina/train/trainer.hpp>

namespace lamina {

// Why it ends, and how to go on.
[[nodiscard]] std::string end_text(TrainEnd end, const RunState& state);

// "the last checkpoint is ...", also for a run that ends in an error. Of rank 0's state.
[[nodiscard]] std::string what_is_saved(const RunState& state);

}  // namespace lamina
