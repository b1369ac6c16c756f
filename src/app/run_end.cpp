#include "run_end.hpp"

#include <fmt/format.h>

namespace lamina {

std::string end_text(TrainEnd end, const RunState& state) {
  switch (end) {
    case TrainEnd::finished:
      return fmt::format("done: {} steps, {} labelled tokens", state.step, state.tokens_seen);
    case TrainEnd::stopped_at:
      return fmt::format("stopped at step {} as train.stop_at says; start again to go on", state.step);
    case TrainEnd::asked_to_stop:
      return fmt::format("a signal asked to stop: saved step {}; start again to go on", state.step);
  }
  return "";
}

std::string what_is_saved(const RunState& state) {
  if (state.last_checkpoint.empty()) return "no checkpoint was saved";
  return fmt::format("the last checkpoint is {}", state.last_checkpoint.string());
}

}  // namespace lamina
