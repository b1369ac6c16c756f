// Where a run begins: with a checkpoint's state or fresh weights, or not at all.
#pragma once

#include "run_folder.hpp"
#include "run_inputs.hpp"

#include <optional>

#include <lamina/config/run_config.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/mpi/communicator.hpp>
#include <lamina/shard/weight_store.hpp>
#include <lamina/train/checkpointer.hpp>

namespace lamina {

struct StartContext {
  const mpi::Communicator& world;
  const RunConfig& config;
  const ModelPlan& plan;
  WeightStore& store;
  Checkpointer& checkpointer;
  RunData& data;
};

// Collective. Only once everything is loaded the run folder is written to (`folder`, on rank 0): config, log, and what
// is moved aside. Nullopt, with a line, for a run that has taken all its steps; nothing is written then.
[[nodiscard]] std::optional<RunState> start_run(const StartContext& context, std::optional<RunFolder>& folder);

}  // namespace lamina
