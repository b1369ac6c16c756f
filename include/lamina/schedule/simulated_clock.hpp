// Executes a schedule on a simulated clock: when each operation would start and end, given what each costs.
//
// An operation starts when the one before it on its stream and everything it waits for are over. The result is a pure
// function of the arguments.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include <lamina/schedule/overlap.hpp>
#include <lamina/schedule/step_schedule.hpp>

namespace lamina {

// Seconds. Indexed by unit or stage; a bucket costs bucket_latency plus its equal share of reduce[unit].
struct StepCosts {
  std::vector<double> forward_gather, backward_gather;  // by unit
  std::vector<double> forward, backward;                // by stage
  std::vector<double> reduce;                           // by unit, all buckets together
  double bucket_latency = 0;

  // Loading, releasing, accumulating and finishing cost nothing. Throws InternalError when the operation's unit or
  // stage has no cost.
  [[nodiscard]] double seconds(const Operation& operation) const;
};

struct SimulatedStep {
  std::vector<Interval> operations;         // in the schedule's order
  double forward = 0;                       // the end of the last stage's forward
  double total = 0;                         // the end of everything
  std::array<double, stream_kinds> busy{};  // time that each stream (StreamKind) works
  Overlap overlap;

  [[nodiscard]] double backward() const { return total - forward; }
};

// `seconds` is asked once for every operation, in order; results are finite and not negative. Throws InternalError
// otherwise, or when an operation waits for one that does not come before it.
[[nodiscard]] SimulatedStep simulate(std::span<const Operation> schedule,
                                     const std::function<double(const Operation&)>& seconds);

}  // namespace lamina
