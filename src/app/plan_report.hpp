// What `lamina plan` prints about a run: its units, one step, its memory.
#pragma once

#include <cstdint>

#include <lamina/config/run_config.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/shard/store_plan.hpp>
#include <lamina/topology/mesh.hpp>

namespace lamina {

// `store.units` are the plan's.
struct PlannedRun {
  const RunConfig& config;
  const ModelPlan& plan;
  const StorePlan& store;
  const Mesh& mesh;
  SumOrder order;
};

// One row a unit, equal layers in one row, and the total; with `tensors` every unit and its tensors.
void print_units(const PlannedRun& run, bool tensors);
void print_step(const PlannedRun& run);
// Of a rank and of a node, against the memory of a node in bytes, or for 0 against what this machine has left.
void print_memory(const PlannedRun& run, std::uint64_t node_has);

}  // namespace lamina
