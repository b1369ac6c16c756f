#include <algorithm>
#include <array>
#include <vector>

#include <lamina/base/check.hpp>
#include <lamina/schedule/overlap.hpp>

namespace lamina {

namespace {

// Time during which both lists of intervals, each in order and without overlaps, are at work.
double common_time(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  double common = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    common += std::max(0.0, std::min(a[i].end, b[j].end) - std::max(a[i].start, b[j].start));
    (a[i].end < b[j].end ? i : j) += 1;
  }
  return common;
}

}  // namespace

Overlap overlap_of(std::span<const Operation> schedule, std::span<const Interval> intervals) {
  require(schedule.size() == intervals.size(), "every operation has an interval");
  std::array<std::vector<Interval>, stream_kinds> worked;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (intervals[i].end > intervals[i].start)
      worked[static_cast<std::size_t>(schedule[i].stream)].push_back(intervals[i]);
  }
  Overlap overlap;
  for (const StreamKind kind : {StreamKind::gather, StreamKind::reduce}) {
    const auto& stream = worked[static_cast<std::size_t>(kind)];
    for (const Interval& interval : stream) overlap.communication += interval.end - interval.start;
    overlap.hidden += common_time(stream, worked[static_cast<std::size_t>(StreamKind::compute)]);
  }
  return overlap;
}

}  // namespace lamina
