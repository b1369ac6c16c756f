#include "plan_simulation.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include <lamina/base/error.hpp>
#include <lamina/base/text.hpp>
#include <lamina/schedule/simulated_clock.hpp>
#include <lamina/shard/flat_layout.hpp>
#include <lamina/train/step_plan.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

// A simulation of more buckets would take long and hundreds of megabytes; such buckets are far too small anyway.
constexpr std::uint64_t most_buckets = 1U << 18;

// What the rates are applied to.
struct Work {
  std::vector<std::uint64_t> unit_bytes;  // of a unit's gradient
  ScheduleShape shape;                    // with the configured buckets
  StepCosts costs;
};

void check_rate(std::string_view name, double value, double low, double high) {
  if (value >= low && value <= high) return;  // not for NaN
  throw UsageError(one_line(fmt::format("--{} {}", name, value), "not a rate that can be simulated",
                            fmt::format("choose a value from {} to {}", low, high)));
}

// Seconds for `bytes` of a whole unit among `ranks`, of which each has its own part already.
double transfer_seconds(std::uint64_t bytes, int ranks, double gigabytes_per_second) {
  return static_cast<double>(bytes) * (ranks - 1) / ranks / (1e9 * gigabytes_per_second);
}

Work work_of(const SimulationRates& rates, const RunConfig& config, const ModelPlan& plan, const StorePlan& store,
             const Mesh& mesh) {
  Work work;
  const int world = mesh.world().world_size(), shards = mesh.shard_size();
  const int reducers = store.defer_replicas ? shards : world;
  const double latency = rates.latency_us * 1e-6;
  StepCosts& costs = work.costs;
  for (const UnitSpec& unit : plan.units) {
    const auto elements = static_cast<std::uint64_t>(FlatLayout(unit, world).padded_elements());
    work.unit_bytes.push_back(sizeof(float) * elements);
    const double gather = transfer_seconds(work.unit_bytes.back(), shards, rates.gather_gbs);
    costs.forward_gather.push_back(shards > 1 ? latency + gather : 0);
    costs.reduce.push_back(transfer_seconds(work.unit_bytes.back(), reducers, rates.reduce_gbs));
  }
  costs.backward_gather = costs.forward_gather;
  costs.bucket_latency = reducers > 1 ? latency : 0;
  const auto tokens = static_cast<double>(config.train.micro_batch * config.data.seq_len);
  for (const Stage& stage : plan.stages) {
    const double flops = tokens * forward_flops_per_token(plan.config, stage, config.data.seq_len);
    costs.forward.push_back(flops / (1e9 * rates.gflops));
    costs.backward.push_back(2 * costs.forward.back());
  }
  work.shape = training_shape(plan, store, mesh, 1, true);
  return work;
}

SimulatedStep simulate_step(const StepCosts& costs, const ScheduleShape& shape) {
  return simulate(step_schedule(shape), [&](const Operation& operation) { return costs.seconds(operation); });
}

double hidden_percent(const SimulatedStep& step) { return 100 * step.overlap.fraction(); }

void print_assumptions(const SimulationRates& rates, const RunConfig& config) {
  fmt::print("\nsimulated micro-step: {} sequence(s) of {} tokens a rank\n", config.train.micro_batch,
             config.data.seq_len);
  fmt::print(
      "assumed: {:g} GFLOP/s a rank, {:g} GB/s into a rank for gathers and {:g} GB/s for reductions, {:g} us a "
      "message\n"
      "(--gflops, --gather_gbs, --reduce_gbs, --latency_us); a backward takes two forwards, the embedding "
      "nothing;\nthe optimizer and what is exchanged once a step come on top\n\n",
      rates.gflops, rates.gather_gbs, rates.reduce_gbs, rates.latency_us);
}

// Returns the overlapped micro-step.
SimulatedStep print_with_and_without_overlap(const Work& work) {
  ScheduleShape shape = work.shape;
  shape.overlap = false;
  const SimulatedStep in_turn = simulate_step(work.costs, shape);
  const SimulatedStep overlapped = simulate_step(work.costs, work.shape);
  fmt::print("{:<16} {:>14} {:>14} {:>14}\n", "milliseconds", "forward", "backward", "total");
  for (const auto& [name, step] : {std::pair("without overlap", in_turn), std::pair("with overlap", overlapped)}) {
    fmt::print("{:<16} {:>14.3f} {:>14.3f} {:>14.3f}\n", name, 1e3 * step.forward, 1e3 * step.backward(),
               1e3 * step.total);
  }
  return overlapped;
}

struct BucketRow {
  std::string name;
  std::uint64_t messages = 0;
  std::optional<SimulatedStep> step;  // none: too many messages to simulate
};

BucketRow bucket_row(const Work& work, std::string name, std::uint64_t bytes) {
  ScheduleShape shape = work.shape;
  BucketRow row{.name = std::move(name), .messages = 0, .step = std::nullopt};
  for (std::size_t unit = 0; unit < shape.units.size(); ++unit) {
    shape.units[unit].buckets = (std::max(work.unit_bytes[unit], bytes) - 1) / bytes + 1;
    row.messages += shape.units[unit].buckets;
  }
  if (row.messages <= most_buckets) row.step = simulate_step(work.costs, shape);
  return row;
}

void print_bucket_sweep(const Work& work) {
  const std::uint64_t largest = *std::max_element(work.unit_bytes.begin(), work.unit_bytes.end());
  constexpr std::uint64_t kib = 1024, most = 256 * kib * kib;
  std::vector<BucketRow> rows;
  for (std::uint64_t bytes = kib; bytes <= most && bytes < largest; bytes *= 4) {
    rows.push_back(bucket_row(work, human_bytes(bytes), bytes));
  }
  rows.push_back(bucket_row(work, "whole unit", largest));
  double least = std::numeric_limits<double>::infinity();
  for (const BucketRow& row : rows) least = row.step ? std::min(least, row.step->total) : least;
  fmt::print("\n{:<16} {:>14} {:>14} {:>14}\n", "bucket", "messages", "total ms", "hidden");
  for (const BucketRow& row : rows) {
    if (!row.step) {
      fmt::print("{:<16} {:>14} {:>14} {:>14}  too many messages to simulate\n", row.name, row.messages, "-", "-");
      continue;
    }
    fmt::print("{:<16} {:>14} {:>14.3f} {:>12.1f} %{}\n", row.name, row.messages, 1e3 * row.step->total,
               hidden_percent(*row.step), row.step->total > least ? "" : "  <- least");
  }
}

}  // namespace

void check_rates(const SimulationRates& rates) {
  check_rate("gather_gbs", rates.gather_gbs, 1e-6, 1e6);
  check_rate("reduce_gbs", rates.reduce_gbs, 1e-6, 1e6);
  check_rate("latency_us", rates.latency_us, 0, 1e9);
  check_rate("gflops", rates.gflops, 1e-6, 1e9);
}

void print_simulation(const SimulationRates& rates, const RunConfig& config, const ModelPlan& plan,
                      const StorePlan& store, const Mesh& mesh) {
  const Work work = work_of(rates, config, plan, store, mesh);
  print_assumptions(rates, config);
  const SimulatedStep step = print_with_and_without_overlap(work);
  if (step.overlap.communication <= 0) {
    fmt::print("overlap: none, one rank neither gathers nor reduces\n");
    return;
  }
  fmt::print(
      "overlap: {:.1f} % of {:.3f} ms of communication hidden behind computation, gradients in buckets of {:g} MiB\n",
      hidden_percent(step), 1e3 * step.overlap.communication, config.parallel.bucket_mb);
  print_bucket_sweep(work);
}

}  // namespace lamina
