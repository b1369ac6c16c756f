// What one optimizer step does, known before the first: the order in which weights are used, gathers and reductions of
// each unit, and the bytes they send between nodes.
#pragma once

#include <cstdint>
#include <vector>

#include <lamina/comm/fabric.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/shard/store_plan.hpp>
#include <lamina/topology/mesh.hpp>

namespace lamina {

enum class Pass { forward, backward };

// One stage of a micro-step. The weights of a unit other than the root are used from the visit that begins a use to the
// one that ends it: neighbours in the same unit share a use, also across stages that only need the root.
struct Visit {
  Stage stage;
  Pass pass = Pass::forward;
  bool needs_weights = true;
  bool begins_use = false, ends_use = false;
  bool ends_gradient = false;  // the last to write its unit's gradient
};

// Forward stages in order; with gradients, then the backward of all but the head (which runs both at once), in reverse.
[[nodiscard]] std::vector<Visit> visits_of(const ModelPlan& plan, bool gradients);
// The units of the uses, in order: what GatherPipeline takes.
[[nodiscard]] std::vector<std::size_t> uses_of(const std::vector<Visit>& visits);

struct UnitTraffic {
  std::uint64_t gathers = 0;     // a micro-step
  std::uint64_t reductions = 0;  // a micro-step
};

// By unit: one gather a use, the root one; with `keep_full` one gather serves all of a micro-step.
[[nodiscard]] std::vector<UnitTraffic> micro_step_traffic(const ModelPlan& plan, bool keep_full);

// Floats that the mesh's own rank sends to other nodes in a step of `micro_steps` micro-steps. `store.units` are the
// plan's.
[[nodiscard]] std::uint64_t floats_sent_by_step(const ModelPlan& plan, const StorePlan& store, const Mesh& mesh,
                                                SumOrder order, std::int64_t micro_steps);

}  // namespace lamina
