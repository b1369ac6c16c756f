// The streams that execute a step against the simulated clock: the same schedule, with operations that sleep.
//
//   lamina-bench-streams [--repeats N] [--scale X]
//
// The published example (4 units; all-gather 20 ms, forward 40 ms, backward 50 ms, reduce-scatter 30 ms in 3 buckets,
// backward's gathers free) and one with prefetch, back-pressure and two micro-steps. Prints measured / simulated; the
// machine's other work can only make it longer, so the least of the repeats counts.
#include "support/run_tool.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include <lamina/base/error.hpp>
#include <lamina/config/argument_parser.hpp>
#include <lamina/schedule/simulated_clock.hpp>
#include <lamina/schedule/streams.hpp>

#include <fmt/format.h>

namespace {

using namespace lamina;

class SleepingWork final : public StreamWork {
 public:
  explicit SleepingWork(const StepCosts& costs) : costs_(costs) {}
  void execute(const Operation& operation, Streams& streams) override {
    for (std::size_t part = operation.part; part < last_part(operation); ++part) {
      std::this_thread::sleep_for(std::chrono::duration<double>(costs_.seconds(operation)));
      if (part + 1 < last_part(operation)) streams.next_part();
    }
  }

 private:
  static std::size_t last_part(const Operation& operation) {
    return operation.kind == OperationKind::backward ? operation.parts : operation.part + 1;
  }
  const StepCosts& costs_;
};

struct Case {
  const char* name;
  ScheduleShape shape;
  StepCosts costs;
};

ScheduleShape shape_of(std::size_t units, std::size_t buckets, std::size_t micro_steps, bool overlap) {
  ScheduleShape shape;
  for (std::size_t unit = 0; unit < units; ++unit) shape.stages.push_back({unit, true});
  shape.units.assign(units, {static_cast<std::int64_t>(buckets), buckets});
  shape.micro_steps = micro_steps;
  shape.overlap = overlap;
  return shape;
}

StepCosts costs_of(std::size_t units, double gather, double forward, double backward, double reduce, double scale) {
  const auto all = [&](double milliseconds) { return std::vector<double>(units, 1e-3 * scale * milliseconds); };
  return {.forward_gather = all(gather),
          .backward_gather = all(0),
          .forward = all(forward),
          .backward = all(backward),
          .reduce = all(reduce)};
}

std::vector<Case> cases(double scale) {
  const StepCosts published = costs_of(4, 20, 40, 50, 30, scale);
  StepCosts slow_reductions = costs_of(6, 10, 10, 15, 40, scale);
  slow_reductions.backward_gather = slow_reductions.forward_gather;
  return {{"published example, without overlap", shape_of(4, 3, 1, false), published},
          {"published example, with overlap", shape_of(4, 3, 1, true), published},
          {"slow reductions, two micro-steps", shape_of(6, 2, 2, true), slow_reductions}};
}

// Seconds of the forward and of everything.
std::pair<double, double> times_of(const Program& program, std::span<const Interval> intervals) {
  double first = std::numeric_limits<double>::infinity(), forward = 0, total = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    first = std::min(first, intervals[i].start);
    total = std::max(total, intervals[i].end);
    if (program.operations()[i].kind == OperationKind::forward) forward = std::max(forward, intervals[i].end);
  }
  return {forward - first, total - first};
}

void compare(const Case& test, std::int64_t repeats) {
  const Program program(step_schedule(test.shape));
  const SimulatedStep simulated =
      simulate(program.operations(), [&](const Operation& operation) { return test.costs.seconds(operation); });
  Streams streams(test.shape.overlap);
  SleepingWork work(test.costs);
  double forward = std::numeric_limits<double>::infinity(), total = forward, hidden = 0;
  for (std::int64_t i = 0; i < repeats; ++i) {
    streams.run(program, work);
    const auto [one_forward, one_total] = times_of(program, streams.intervals());
    if (one_total >= total) continue;
    forward = one_forward;
    total = one_total;
    hidden = overlap_of(program.operations(), streams.intervals()).fraction();
  }
  fmt::print("{:<36} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>8.3f} {:>8.1f} {:>8.1f}\n", test.name,
             1e3 * simulated.forward, 1e3 * simulated.total, 1e3 * forward, 1e3 * total, total / simulated.total,
             100 * simulated.overlap.fraction(), 100 * hidden);
}

void run(std::int64_t repeats, double scale) {
  if (!(scale > 0 && scale <= 1000))
    throw UsageError(one_line(fmt::format("--scale {}", scale), "not a scale", "choose a value above 0, up to 1000"));
  fmt::print("{:<36} {:>19} {:>19} {:>8} {:>17}\n", "", "simulated ms", "executed ms", "", "hidden %");
  fmt::print("{:<36} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}\n", "", "forward", "total", "forward", "total", "ratio",
             "simul.", "exec.");
  for (const Case& test : cases(scale)) compare(test, repeats);
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t repeats = 5;
  double scale = 1;
  lamina::ArgumentParser parser("lamina-bench-streams", "Executes schedules of sleeping operations on threads.");
  parser.option("repeats", repeats, "N", "runs of each schedule; the fastest counts", {1, 1000});
  parser.option("scale", scale, "X", "times the milliseconds of the published example");
  return lamina::run_tool(argc, argv, parser, [&] { run(repeats, scale); });
}
