#include <algorithm>
#include <limits>
#include <random>

#include <lamina/base/error.hpp>
#include <lamina/schedule/simulated_clock.hpp>

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

ScheduleShape shape_of(std::size_t units, std::size_t buckets, bool overlap, std::size_t prefetch = 1) {
  ScheduleShape shape;
  for (std::size_t unit = 0; unit < units; ++unit) shape.stages.push_back({unit, true});
  shape.units.assign(units, {static_cast<std::int64_t>(buckets), buckets});
  shape.overlap = overlap;
  shape.prefetch = prefetch;
  return shape;
}

StepCosts even_costs(std::size_t units, double gather, double forward, double backward, double reduce) {
  return {.forward_gather = std::vector<double>(units, gather),
          .backward_gather = std::vector<double>(units, gather),
          .forward = std::vector<double>(units, forward),
          .backward = std::vector<double>(units, backward),
          .reduce = std::vector<double>(units, reduce)};
}

SimulatedStep run(const ScheduleShape& shape, const StepCosts& costs) {
  return simulate(step_schedule(shape), [&](const Operation& operation) { return costs.seconds(operation); });
}

// The published example: 4 units; milliseconds.
StepCosts published() {
  StepCosts costs = even_costs(4, 20, 40, 50, 30);
  costs.backward_gather.assign(4, 0);
  return costs;
}

TEST(SimulatedClock, ReproducesThePublishedExample) {
  const SimulatedStep serial = run(shape_of(4, 3, false), published());
  EXPECT_DOUBLE_EQ(serial.forward, 240);
  EXPECT_NEAR(serial.backward(), 320, 1e-9);
  EXPECT_EQ(serial.overlap.hidden, 0);
  const SimulatedStep streams = run(shape_of(4, 3, true), published());
  EXPECT_DOUBLE_EQ(streams.forward, 180);
  EXPECT_NEAR(streams.backward(), 210, 1e-9);
  // All but the first gather and the last bucket are hidden.
  EXPECT_NEAR(streams.overlap.communication, 4 * 20 + 4 * 30, 1e-9);
  EXPECT_NEAR(streams.overlap.hidden, 200 - 20 - 10, 1e-9);
}

TEST(SimulatedClock, WholeUnitsLeaveTheLastReductionBare) {
  EXPECT_NEAR(run(shape_of(4, 1, true), published()).backward(), 4 * 50 + 30, 1e-9);
}

TEST(SimulatedClock, NoPrefetchNoOverlapInForward) {
  EXPECT_DOUBLE_EQ(run(shape_of(4, 3, true, 0), published()).forward, 240);
}

TEST(SimulatedClock, StartsAreInPlace) {
  const auto schedule = step_schedule(shape_of(4, 3, true));
  const StepCosts costs = published();
  const SimulatedStep step = simulate(schedule, [&](const Operation& operation) { return costs.seconds(operation); });
  std::vector<double> gathers, buckets;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (schedule[i].kind == OperationKind::gather && !schedule[i].in_backward)
      gathers.push_back(step.operations[i].start);
    if (schedule[i].kind == OperationKind::reduce && schedule[i].unit == 3) buckets.push_back(step.operations[i].start);
  }
  EXPECT_EQ(gathers, (std::vector<double>{0, 20, 60, 100}));  // two slots: the third waits for the first use's end
  ASSERT_EQ(buckets.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(buckets[i], 180 + 50.0 / 3 * static_cast<double>(i + 1), 1e-9);
}

TEST(SimulatedClock, FullGradientSlotsHoldTheBackwardUp) {
  StepCosts costs = even_costs(6, 0, 1, 10, 100);  // reductions ten times as long as the backwards
  const SimulatedStep two = run(shape_of(6, 1, true), costs);
  ScheduleShape many = shape_of(6, 1, true);
  many.gradient_slots = 6;
  const auto end_of_compute = [&](const ScheduleShape& shape) {
    const auto schedule = step_schedule(shape);
    const SimulatedStep step = run(shape, costs);
    double end = 0;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      if (schedule[i].kind == OperationKind::backward) end = std::max(end, step.operations[i].end);
    }
    return end;
  };
  EXPECT_DOUBLE_EQ(end_of_compute(many), 6 + 60);
  // The sixth backward waits for the fourth reduction.
  EXPECT_DOUBLE_EQ(end_of_compute(shape_of(6, 1, true)), 6 + 10 + 4 * 100 + 10);
  EXPECT_DOUBLE_EQ(two.total, 6 + 10 + 6 * 100);
}

TEST(SimulatedClock, PropertiesOfRandomCosts) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0, 1);
  std::uniform_int_distribution<std::size_t> count(1, 6), depth(0, 3);
  const auto fill = [&](std::vector<double>& costs) {
    for (double& cost : costs) cost = seconds(random);
  };
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t units = count(random);
    ScheduleShape shape = shape_of(units, count(random), true, depth(random));
    shape.keep_full = trial % 3 == 0;
    StepCosts costs = even_costs(units, 0, 0, 0, 0);
    for (auto* list : {&costs.forward_gather, &costs.backward_gather, &costs.forward, &costs.backward, &costs.reduce})
      fill(*list);
    costs.bucket_latency = 0.1 * seconds(random);
    const SimulatedStep streams = run(shape, costs);
    shape.overlap = false;
    const SimulatedStep serial = run(shape, costs);
    EXPECT_LE(streams.total, serial.total + 1e-12);
    EXPECT_NEAR(serial.total, serial.busy[0] + serial.busy[1] + serial.busy[2], 1e-9);
    EXPECT_NEAR(serial.overlap.hidden, 0, 1e-9);
    for (const double busy : streams.busy) EXPECT_GE(streams.total, busy - 1e-12);
    EXPECT_LE(streams.overlap.hidden, streams.overlap.communication + 1e-12);
    EXPECT_GE(streams.overlap.hidden, 0);
    // A deeper prefetch never hurts here: gathers and reductions have streams of their own.
    shape.overlap = true;
    ++shape.prefetch;
    EXPECT_LE(run(shape, costs).total, streams.total + 1e-12);
  }
}

TEST(SimulatedClock, BucketsHaveABestSize) {
  StepCosts costs = even_costs(4, 20, 40, 50, 30);
  costs.bucket_latency = 1;
  std::vector<double> totals;
  for (std::size_t buckets = 1; buckets <= 1024; buckets *= 2)
    totals.push_back(run(shape_of(4, buckets, true), costs).total);
  const auto least = std::min_element(totals.begin(), totals.end());
  EXPECT_NE(least, totals.begin());                  // one bucket a unit leaves its reduction bare
  EXPECT_NE(least, totals.end() - 1);                // and many pay for their messages
  EXPECT_TRUE(std::is_sorted(least, totals.end()));  // worse and worse after the best
  EXPECT_TRUE(std::is_sorted(totals.begin(), least + 1, std::greater<>()));  // better and better before
}

TEST(SimulatedClock, RefusesWhatCannotBe) {
  const auto schedule = step_schedule(shape_of(2, 1, true));
  EXPECT_THROW(static_cast<void>(simulate(schedule, [](const Operation&) { return -1.0; })), InternalError);
  EXPECT_THROW(
      static_cast<void>(simulate(schedule, [](const Operation&) { return std::numeric_limits<double>::infinity(); })),
      InternalError);
  EXPECT_THROW(static_cast<void>(run(shape_of(5, 1, true), published())), InternalError);
  std::vector<Operation> forward_wait(1);
  forward_wait[0].waits = {0};
  EXPECT_THROW(static_cast<void>(simulate(forward_wait, [](const Operation&) { return 1.0; })), InternalError);
}

}  // namespace
}  // namespace lamina::test
