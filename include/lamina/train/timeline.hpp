// timeline.json: what each stream of each rank did during some steps, as a Chrome trace (open it in Perfetto or
// chrome://tracing; tools/timeline_png.py draws it).
//
// One process a rank, one track a stream: an event for each operation with its unit, bytes and micro-step; flow arrows
// from each gather to the computation that uses it and from each backward to the reductions of its buckets; a track of
// whole steps with their overlap. Times are those of rank 0's clock: other ranks' are shifted by the median difference
// seen at barriers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <lamina/config/step_range.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/mpi/communicator.hpp>
#include <lamina/schedule/step_schedule.hpp>
#include <lamina/train/step.hpp>

namespace lamina {

class Timeline {
 public:
  // References must outlive it. `shape`: of the schedule whose traces come.
  Timeline(const mpi::Communicator& world, const ModelPlan& plan, const ScheduleShape& shape, StepRange range);

  // After every step. Keeps the steps of the range; nothing else is noted, and outside the range it costs nothing.
  void add(const StepResult& result, const StepTrace& trace);
  // The last step of the range has been added and nothing was written since.
  [[nodiscard]] bool complete() const { return !events_.empty() && last_step_ == range_.last; }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  // Rank 0 writes FOLDER/timeline.json; the notes are dropped. Throws AgreedError (usage) when it cannot. Collective.
  std::filesystem::path write(const std::filesystem::path& folder);

 private:
  void add_operations(const StepTrace& trace);
  void add_arrows(const StepTrace& trace, std::size_t place);
  void add_event(std::string_view name, int track, Interval interval, const std::string& arguments);
  void add_arrow(std::string_view name, int from_track, Interval from, int to_track, Interval to);
  [[nodiscard]] std::string name_of_operation(const Operation& operation) const;

  const mpi::Communicator& world_;
  const ModelPlan& plan_;
  const ScheduleShape& shape_;
  StepRange range_;
  std::int64_t last_step_ = 0;
  std::int64_t arrows_ = 0;
  double origin_;       // seconds of this rank's steady clock that are time 0 here
  std::string events_;  // JSON objects, each followed by a comma
};

}  // namespace lamina
