// "FIRST:LAST": a range of steps.
#pragma once

#include <cstdint>
#include <string_view>

namespace lamina {

struct StepRange {
  std::int64_t first = 1, last = 0;  // 1-based, both included
  [[nodiscard]] bool contains(std::int64_t step) const { return first <= step && step <= last; }
  bool operator==(const StepRange&) const = default;
};

// "FIRST:LAST" or "STEP". Throws UsageError naming `what` unless 1 <= FIRST <= LAST.
[[nodiscard]] StepRange parse_step_range(std::string_view text, std::string_view what);

}  // namespace lamina
