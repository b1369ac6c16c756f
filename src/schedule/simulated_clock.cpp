#include <algorithm>
#include <cmath>

#include <lamina/base/check.hpp>
#include <lamina/schedule/simulated_clock.hpp>

namespace lamina {

namespace {

double entry(const std::vector<double>& costs, std::size_t index) {
  require(index < costs.size(), "every unit and stage of a schedule has a cost");
  return costs[index];
}

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

double StepCosts::seconds(const Operation& operation) const {
  const auto parts = static_cast<double>(operation.parts);
  switch (operation.kind) {
    case OperationKind::gather:
      return entry(operation.in_backward ? backward_gather : forward_gather, operation.unit);
    case OperationKind::forward:
      return entry(forward, operation.stage);
    case OperationKind::backward:
      return entry(backward, operation.stage) / parts;
    case OperationKind::reduce:
      return bucket_latency + entry(reduce, operation.unit) / parts;
    case OperationKind::release:
      break;
  }
  return 0;
}

SimulatedStep simulate(std::span<const Operation> schedule, const std::function<double(const Operation&)>& seconds) {
  SimulatedStep step;
  std::array<double, stream_kinds> free_at{};
  std::array<std::vector<Interval>, stream_kinds> worked;
  for (const Operation& operation : schedule) {
    const auto stream = static_cast<std::size_t>(operation.stream);
    const double cost = seconds(operation);
    require(std::isfinite(cost) && cost >= 0, "the cost of an operation is finite and not negative");
    double start = free_at[stream];
    for (const std::size_t wait : operation.waits) {
      require(wait < step.operations.size(), "an operation waits for operations before it");
      start = std::max(start, step.operations[wait].end);
    }
    const Interval interval{start, start + cost};
    step.operations.push_back(interval);
    free_at[stream] = interval.end;
    step.busy[stream] += cost;
    if (cost > 0) worked[stream].push_back(interval);
    if (operation.kind == OperationKind::forward) step.forward = std::max(step.forward, interval.end);
    step.total = std::max(step.total, interval.end);
  }
  const auto compute = static_cast<std::size_t>(StreamKind::compute);
  for (const StreamKind kind : {StreamKind::gather, StreamKind::reduce}) {
    const auto stream = static_cast<std::size_t>(kind);
    step.communication += step.busy[stream];
    step.hidden += common_time(worked[stream], worked[compute]);
  }
  return step;
}

}  // namespace lamina
