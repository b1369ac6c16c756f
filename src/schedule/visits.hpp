// The stages that a micro-step visits, pass by pass, with what each means for its unit's weights and gradient.
#pragma once

#include <cstddef>
#include <vector>

#include <lamina/schedule/step_schedule.hpp>

namespace lamina {

// One stage of one pass. With gradients, the last stage's forward runs its backward, too.
struct Visit {
  std::size_t stage = 0, unit = 0;
  bool in_backward = false;
  bool needs_weights = true, writes_gradient = false;
  bool begins_use = false, ends_use = false;
  std::size_t first_bucket = 0, end_bucket = 0;  // these become final here
};

[[nodiscard]] std::vector<Visit> visits_of(const ScheduleShape& shape);

}  // namespace lamina
