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
    case OperationKind::load:
    case OperationKind::release:
    case OperationKind::accumulate:
    case OperationKind::finish:
      break;
  }
  return 0;
}

SimulatedStep simulate(std::span<const Operation> schedule, const std::function<double(const Operation&)>& seconds) {
  SimulatedStep step;
  std::array<double, stream_kinds> free_at{};
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
    if (operation.kind == OperationKind::forward) step.forward = std::max(step.forward, interval.end);
    step.total = std::max(step.total, interval.end);
  }
  step.overlap = overlap_of(schedule, step.operations);
  return step;
}

}  // namespace lamina
