// Splitting work over this rank's threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include <omp.h>

namespace lamina::cpu {

// Below this many element operations a second thread costs more than it brings.
inline constexpr std::int64_t worth_a_thread = 32768;

// body(first, last) over disjoint ranges that cover [0, count), one a thread; `work` is the whole cost in element
// operations. Range ends are multiples of `grain`. What body computes for an element must not depend on the range it
// comes in.
template <typename Body>
void parallel_ranges(int threads, std::int64_t count, std::int64_t work, std::int64_t grain, Body&& body) {
  const std::int64_t pieces = (count + grain - 1) / grain;
  const std::int64_t team = std::min<std::int64_t>({threads, pieces, work / worth_a_thread + 1});
  if (team <= 1) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(static_cast <int>(team))
  {
    const std::int64_t members = omp_get_num_threads();
    const std::int64_t me = omp_get_thread_num();
    const std::int64_t first = pieces * me / members * grain;
    const std::int64_t last = std::min(pieces * (me + 1) / members * grain, count);
    if (first < last) body(first, last);
  }
}

// body(i) for every i in [0, count), items of unequal cost: each thread takes the next one.
template <typename Body>
void parallel_items(int threads, std::int64_t count, std::int64_t work, Body&& body) {
  const std::int64_t team = std::min<std::int64_t>({threads, count, work / worth_a_thread + 1});
  if (team <= 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
#pragma omp parallel for num_threads(static_cast <int>(team)) schedule(dynamic, 1)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace lamina::cpu
