// What one optimizer step does, known before the first: the schedule of its operations, how often each unit is gathered
// and reduced, and the bytes that are sent between nodes.
#pragma once

#include <cstdint>
#include <vector>

#include <lamina/comm/fabric.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/schedule/step_schedule.hpp>
#include <lamina/shard/store_plan.hpp>
#include <lamina/topology/mesh.hpp>

namespace lamina {

[[nodiscard]] StoreUnits store_units(const ModelPlan& plan);

// Of training steps with `micro_steps` micro-steps. `store.units` are the plan's. Throws UsageError when buckets are so
// small that there would be more operations than a schedule may have.
[[nodiscard]] ScheduleShape training_shape(const ModelPlan& plan, const StorePlan& store, const Mesh& mesh,
                                           std::int64_t micro_steps, bool overlap);
// Of the forward of one micro-batch.
[[nodiscard]] ScheduleShape evaluation_shape(const ModelPlan& plan, const StorePlan& store, const Mesh& mesh,
                                             bool overlap);

struct UnitTraffic {
  std::uint64_t gathers = 0;
  std::uint64_t reductions = 0;
  std::uint64_t buckets = 0;  // of all reductions
};

// By unit, of all operations of a schedule.
[[nodiscard]] std::vector<UnitTraffic> traffic_of(const ScheduleShape& shape);

// Floats that the mesh's own rank sends to other nodes in a training step.
[[nodiscard]] std::uint64_t floats_sent_by_step(const ModelPlan& plan, const StorePlan& store, const Mesh& mesh,
                                                SumOrder order, std::int64_t micro_steps);

}  // namespace lamina
