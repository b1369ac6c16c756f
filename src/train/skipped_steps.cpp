#include <cmath>

#include <lamina/base/error.hpp>
#include <lamina/train/skipped_steps.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr const char* what_to_do =
    "lower optim.lr, lengthen optim.warmup or set optim.grad_clip, and resume from the last checkpoint";

std::string loss_and_norm(const StepResult& result) {
  return fmt::format("step {}: loss {:.6g} and gradient norm {:.6g}", result.step, result.loss, result.grad_norm);
}

}  // namespace

bool leaves_out_update(const TrainSection& train, const StepResult& result) {
  if (result.no_labels) return true;
  if (std::isfinite(result.loss) && std::isfinite(result.grad_norm)) return false;
  if (train.skip_nonfinite) return true;
  throw mpi::AgreedError(ExitCode::data, one_line(loss_and_norm(result),
                                                  "training has diverged; the weights were not updated", what_to_do));
}

void count_update(const StepResult& result, RunState& state) {
  if (result.skipped) {
    ++state.skipped;
    if (!result.no_labels) ++state.skipped_in_a_row;  // that is no sign of a model that has diverged
  } else {
    ++state.updates;
    state.skipped_in_a_row = 0;
  }
}

std::string skip_warning(const StepResult& result, const RunState& state) {
  if (result.no_labels) {
    return fmt::format(
        "step {}: no token has a label: nothing is learned, its update was skipped ({} in the whole run)", result.step,
        state.skipped);
  }
  return fmt::format("{}: its update was skipped ({} in a row, {} in the whole run)", loss_and_norm(result),
                     state.skipped_in_a_row, state.skipped);
}

void refuse_endless_skipping(const RunState& state) {
  if (state.skipped_in_a_row < most_skipped_in_a_row) return;
  throw mpi::AgreedError(
      ExitCode::data, one_line(fmt::format("step {}: the updates of {} steps in a row were skipped", state.step,
                                           state.skipped_in_a_row),
                               "training has diverged: loss or gradient norm stay without a finite value", what_to_do));
}

}  // namespace lamina
