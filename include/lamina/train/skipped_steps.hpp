// Steps whose loss or gradient norm is not finite: the run ends, or with train.skip_nonfinite goes on without their
// update. Steps whose global batch has no label always go on without update: there is no loss to take a gradient of,
// and weight decay alone would move the weights.
//
// Every rank decides alike without asking, because loss and norm come from sums that all ranks hold to the bit: one
// infinity or NaN on one rank makes them NaN everywhere (base/exact_sum.hpp). A skipped step leaves weights, moments
// and the number of updates (bias correction) as they were; its samples are used up, and the learning rate's schedule
// goes on by the number of the step.
#pragma once

#include <cstdint>
#include <string>

#include <lamina/config/run_config.hpp>
#include <lamina/train/checkpointer.hpp>
#include <lamina/train/step.hpp>

namespace lamina {

// A run that skips this many steps in a row does not recover by itself: it ends as if skipping were off. A gradient now
// and then is what skipping is for, and a scaler of mixed precision needs a few dozen steps at most.
inline constexpr std::int64_t most_skipped_in_a_row = 100;

// Whether the update of the step must be left out. Throws AgreedError (data) unless train.skip_nonfinite allows it.
[[nodiscard]] bool leaves_out_update(const TrainSection& train, const StepResult& result);

// Counts the step as an update or as skipped.
void count_update(const StepResult& result, RunState& state);

// "step 7: loss inf and gradient norm nan: ...", with how often so far.
[[nodiscard]] std::string skip_warning(const StepResult& result, const RunState& state);

// Throws AgreedError (data) once most_skipped_in_a_row steps in a row were skipped as not finite.
void refuse_endless_skipping(const RunState& state);

}  // namespace lamina
