#include <algorithm>
#include <map>
#include <string>

#include <lamina/base/error.hpp>
#include <lamina/schedule/step_schedule.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina::test {
namespace {

// "gather 1", "backward 2 1/3", ... with the unit of gathers, releases and reductions and the stage of computations.
std::string name(const Operation& operation) {
  const bool compute = operation.kind == OperationKind::forward || operation.kind == OperationKind::backward;
  std::string text =
      std::string(name_of(operation.kind)) + " " + std::to_string(compute ? operation.stage : operation.unit);
  if (operation.parts > 1) text += " " + std::to_string(operation.part + 1) + "/" + std::to_string(operation.parts);
  return text;
}

std::vector<std::string> names(const std::vector<Operation>& schedule) {
  std::vector<std::string> all;
  for (const Operation& operation : schedule) all.push_back(name(operation));
  return all;
}

ScheduleShape plain(std::size_t units, std::size_t buckets = 1) {
  ScheduleShape shape;
  for (std::size_t unit = 0; unit < units; ++unit) shape.stages.push_back({unit, unit > 0});
  shape.units.assign(units, {static_cast<std::int64_t>(buckets), buckets});
  return shape;
}

// Names of what the operation called `which` (its last occurrence) waits for.
std::vector<std::string> waits_of(const std::vector<Operation>& schedule, const std::string& which) {
  const auto all = names(schedule);
  const auto place = std::find(all.rbegin(), all.rend(), which);
  EXPECT_NE(place, all.rend()) << which;
  std::vector<std::string> waits;
  for (const std::size_t wait : schedule.at(static_cast<std::size_t>(all.rend() - place) - 1).waits)
    waits.push_back(all.at(wait));
  return waits;
}

TEST(StepSchedule, ListsAMicroStep) {
  const std::vector<std::string> expected{
      "gather 0",     "forward 0",      "release 0",      "gather 1",       "forward 1",   "release 1",
      "gather 2",     "forward 2",      "backward 2 1/2", "backward 2 2/2", "release 2",   "reduce 2 1/2",
      "reduce 2 2/2", "gather 1",       "backward 1 1/2", "backward 1 2/2", "release 1",   "reduce 1 1/2",
      "reduce 1 2/2", "backward 0 1/2", "backward 0 2/2", "reduce 0 1/2",   "reduce 0 2/2"};
  EXPECT_EQ(names(step_schedule(plain(3, 2))), expected);
}

TEST(StepSchedule, ComputeWaitsForItsGatherAndBucketsForTheirPart) {
  const auto schedule = step_schedule(plain(4, 3));
  EXPECT_THAT(waits_of(schedule, "forward 2"), testing::ElementsAre("gather 2"));
  EXPECT_THAT(waits_of(schedule, "backward 1 1/3"), testing::ElementsAre("gather 1", "reduce 3 3/3"));
  EXPECT_THAT(waits_of(schedule, "reduce 1 2/3"), testing::ElementsAre("backward 1 2/3"));
}

TEST(StepSchedule, GathersWaitForAFreeSlot) {
  for (std::size_t prefetch = 0; prefetch < 4; ++prefetch) {
    ScheduleShape shape = plain(6);
    shape.prefetch = prefetch;
    const auto schedule = step_schedule(shape);
    const auto all = names(schedule);
    for (std::size_t unit = 0; unit < 5; ++unit) {
      const std::size_t gather =
          static_cast<std::size_t>(std::find(all.begin(), all.end(), "gather " + std::to_string(unit)) - all.begin());
      std::vector<std::string> waits;
      for (const std::size_t wait : schedule[gather].waits) waits.push_back(all[wait]);
      if (unit <= prefetch) {
        EXPECT_TRUE(waits.empty());
      } else {
        EXPECT_THAT(waits, testing::ElementsAre("release " + std::to_string(unit - prefetch - 1)));
      }
    }
  }
}

TEST(StepSchedule, AUnitInUseIsNotGatheredAgain) {
  ScheduleShape shape = plain(3);
  shape.prefetch = 3;
  // Unit 1 is used forward and backward with only unit 2's use between them, inside the window of prefetch.
  EXPECT_THAT(waits_of(step_schedule(shape), "gather 1"), testing::Each("release 1"));
}

TEST(StepSchedule, GradientSlotsPushBack) {
  ScheduleShape shape = plain(4);
  EXPECT_THAT(waits_of(step_schedule(shape), "backward 0"), testing::ElementsAre("reduce 2"));
  shape.gradient_slots = 1;
  EXPECT_THAT(waits_of(step_schedule(shape), "backward 0"), testing::ElementsAre("reduce 1"));
  shape.gradient_slots = 4;
  EXPECT_TRUE(waits_of(step_schedule(shape), "backward 0").empty());
}

TEST(StepSchedule, ATiedUnitIsReducedOnceAfterItsLastWriter) {
  ScheduleShape shape;
  shape.stages = {{2, false}, {0, true}, {1, true}, {2, true}};  // embedding and head share unit 2
  shape.units = {{1, 1}, {1, 1}, {2, 2}};
  const auto schedule = step_schedule(shape);
  const auto all = names(schedule);
  EXPECT_EQ(std::count(all.begin(), all.end(), "reduce 2 1/2"), 1);
  EXPECT_EQ(all.back(), "reduce 2 2/2");
  EXPECT_THAT(waits_of(schedule, "reduce 2 1/2"), testing::ElementsAre("backward 0 1/2"));
  EXPECT_EQ(std::count(all.begin(), all.end(), "backward 3"), 1);  // the head's backward does not complete anything
  // The head's gradient holds one slot all along: the blocks share the other.
  EXPECT_THAT(waits_of(schedule, "backward 1"), testing::ElementsAre("gather 0", "reduce 1"));
  shape.gradient_slots = 1;
  EXPECT_THROW(static_cast<void>(step_schedule(shape)), InternalError);
}

TEST(StepSchedule, WhatATiedEmbeddingWritesAgainIsNotFinalBefore) {
  ScheduleShape shape;  // everything in one unit; the tied tensor lies in front of, or behind, the block
  shape.units = {{30, 3}};
  for (const std::int64_t tied_offset : {0, 20}) {
    shape.stages = {{0, false, tied_offset}, {0, true, 20 - tied_offset}, {0, true, tied_offset}};
    const auto schedule = step_schedule(shape);
    // Block last: its buckets leave after its backward; the tied ones always after the embedding's.
    const bool block_behind = tied_offset == 0;
    EXPECT_THAT(waits_of(schedule, "reduce 0 1/3"),
                testing::ElementsAre(block_behind ? "backward 1" : "backward 0 1/3"));
    EXPECT_THAT(waits_of(schedule, "reduce 0 3/3"),
                testing::ElementsAre(block_behind ? "backward 0 2/2" : "backward 0 3/3"));
  }
}

TEST(StepSchedule, KeptUnitsAreGatheredOnce) {
  ScheduleShape shape = plain(4);
  shape.keep_full = true;
  const auto all = names(step_schedule(shape));
  for (const char* unit : {"0", "1", "2", "3"}) {
    EXPECT_EQ(std::count(all.begin(), all.end(), std::string("gather ") + unit), 1);
    EXPECT_EQ(std::count(all.begin(), all.end(), std::string("release ") + unit), 1);
  }
}

TEST(StepSchedule, NeighboursInAUnitShareAUseAndTheBuckets) {
  ScheduleShape shape;
  shape.stages = {{0, false}, {1, true, 0}, {1, true, 2}, {2, true}};
  shape.units = {{1, 1}, {4, 4}, {1, 1}};
  const std::vector<std::string> expected{
      "gather 0",       "forward 0",      "release 0",      "gather 1",     "forward 1",    "forward 2",
      "release 1",      "gather 2",       "forward 3",      "backward 3",   "release 2",    "reduce 2",
      "gather 1",       "backward 2 1/2", "backward 2 2/2", "reduce 1 1/4", "reduce 1 2/4", "backward 1 1/2",
      "backward 1 2/2", "release 1",      "reduce 1 3/4",   "reduce 1 4/4", "backward 0",   "reduce 0"};
  const auto schedule = step_schedule(shape);
  EXPECT_EQ(names(schedule), expected);
  EXPECT_THAT(waits_of(schedule, "reduce 1 3/4"), testing::ElementsAre("backward 1 1/2"));
  shape.units[1].buckets = 1;  // one bucket is final with the unit's last backward
  EXPECT_THAT(waits_of(step_schedule(shape), "reduce 1"), testing::ElementsAre("backward 1"));
}

TEST(StepSchedule, TheRootStaysFull) {
  ScheduleShape shape;
  shape.stages = {{2, false}, {0, true}, {1, true}, {2, true}};  // embedding and head in the root
  shape.units.assign(3, {});
  shape.root = 2;
  const std::vector<std::string> expected{"gather 2",  "forward 0",  "gather 0",  "forward 1",  "release 0",
                                          "gather 1",  "forward 2",  "forward 3", "backward 3", "backward 2",
                                          "release 1", "reduce 1",   "gather 0",  "backward 1", "release 0",
                                          "reduce 0",  "backward 0", "reduce 2",  "release 2"};
  const auto schedule = step_schedule(shape);
  EXPECT_EQ(names(schedule), expected);
  EXPECT_THAT(waits_of(schedule, "forward 3"), testing::ElementsAre("gather 2"));
  shape.root = 3;
  EXPECT_THROW(static_cast<void>(step_schedule(shape)), InternalError);
}

TEST(StepSchedule, WithoutOverlapEveryOperationWaitsForTheOneBefore) {
  ScheduleShape shape = plain(3, 2);
  shape.overlap = false;
  const auto schedule = step_schedule(shape);
  for (std::size_t i = 1; i < schedule.size(); ++i) EXPECT_THAT(schedule[i].waits, testing::Contains(i - 1));
}

TEST(StepSchedule, RefusesShapesThatCannotBe) {
  EXPECT_THROW(static_cast<void>(step_schedule({})), InternalError);
  ScheduleShape shape = plain(2);
  shape.units = {{1, 1}, {1, 0}};
  EXPECT_THROW(static_cast<void>(step_schedule(shape)), InternalError);
  shape.units = {{1, 1}};
  EXPECT_THROW(static_cast<void>(step_schedule(shape)), InternalError);
  shape = plain(2);
  shape.gradient_slots = 0;
  EXPECT_THROW(static_cast<void>(step_schedule(shape)), InternalError);
}

}  // namespace
}  // namespace lamina::test
