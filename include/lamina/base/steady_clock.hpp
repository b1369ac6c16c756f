// The clock of everything that is timed.
#pragma once

#include <chrono>

namespace lamina {

// Seconds since a moment that is fixed while the host runs; never goes back.
[[nodiscard]] inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace lamina
