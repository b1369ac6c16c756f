// `lamina plan --simulate`: how long a micro-step would take at given rates, on a simulated clock.
#pragma once

#include <lamina/config/run_config.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/shard/store_plan.hpp>
#include <lamina/topology/mesh.hpp>

namespace lamina {

// What a rank is assumed to do. Defaults: a core of a server of 2020 with OpenBLAS, ranks of one node in shared memory.
struct SimulationRates {
  double gather_gbs = 5;   // GB/s that arrive at a rank from the others of its group in a gather
  double reduce_gbs = 5;   // the same of a reduction
  double latency_us = 20;  // of each gather and each bucket
  double gflops = 60;      // of one rank in matrix products
};

// Throws UsageError naming the option that is out of range.
void check_rates(const SimulationRates& rates);

// `store.units` are the plan's. Prints the assumptions, a micro-step with and without overlap, and the total over sizes
// of reduction buckets.
void print_simulation(const SimulationRates& rates, const RunConfig& config, const ModelPlan& plan,
                      const StorePlan& store, const Mesh& mesh);

}  // namespace lamina
