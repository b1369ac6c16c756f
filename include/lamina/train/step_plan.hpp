// What one optimizer step does, known before the first: gathers and reductions of each unit, and the bytes they send
// between nodes.
#pragma once

#include <cstdint>
#include <vector>

#include <lamina/comm/fabric.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/shard/store_plan.hpp>
#include <lamina/topology/mesh.hpp>

namespace lamina {

struct UnitTraffic {
  std::uint64_t gathers = 0;     // a micro-step
  std::uint64_t reductions = 0;  // a micro-step
};

// By unit. A stage reads its unit's weights once in forward, and a block once more in backward; with `keep_full` one
// gather serves all of a micro-step.
[[nodiscard]] std::vector<UnitTraffic> micro_step_traffic(const ModelPlan& plan, bool keep_full);

// Floats that the mesh's own rank sends to other nodes in a step of `micro_steps` micro-steps. `store.units` are the
// plan's.
[[nodiscard]] std::uint64_t floats_sent_by_step(const ModelPlan& plan, const StorePlan& store, const Mesh& mesh,
                                                SumOrder order, std::int64_t micro_steps);

}  // namespace lamina
