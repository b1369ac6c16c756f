// How much of the communication of a step was hidden behind computation.
#pragma once

#include <span>

#include <lamina/schedule/step_schedule.hpp>

namespace lamina {

// Seconds, of any clock.
struct Interval {
  double start = 0, end = 0;
};

struct Overlap {
  double communication = 0;  // of the gather and the reduce stream together
  double hidden = 0;         // the part of it during which the compute stream worked as well

  // hidden / communication; 0 without communication.
  [[nodiscard]] double fraction() const { return communication > 0 ? hidden / communication : 0; }
};

// `intervals`: when each operation of the schedule ran, in the schedule's order; those of one stream do not overlap.
[[nodiscard]] Overlap overlap_of(std::span<const Operation> schedule, std::span<const Interval> intervals);

}  // namespace lamina
