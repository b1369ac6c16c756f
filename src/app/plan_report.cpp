#include "plan_report.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <lamina/base/host_memory.hpp>
#include <lamina/base/text.hpp>
#include <lamina/model/model_runner.hpp>
#include <lamina/optim/optimizer.hpp>
#include <lamina/shard/flat_layout.hpp>
#include <lamina/train/step_plan.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

std::int64_t micro_steps_of(const PlannedRun& run) {
  return run.config.train.global_batch / (run.config.train.micro_batch * run.mesh.world().world_size());
}

struct UnitRow {
  std::string name;
  std::int64_t units = 1, tensors = 0, parameters = 0;
  std::uint64_t full = 0, kept = 0;  // bytes of weights: whole, and on a rank between steps
  std::uint64_t gathers = 0, buckets = 0;

  [[nodiscard]] bool like(const UnitRow& other) const {
    return tensors == other.tensors && parameters == other.parameters && kept == other.kept &&
           gathers == other.gathers && buckets == other.buckets;
  }
};

std::uint64_t float_bytes(std::int64_t floats) { return static_cast<std::uint64_t>(floats) * sizeof(float); }

std::vector<UnitRow> unit_rows(const PlannedRun& run) {
  const int world = run.mesh.world().world_size();
  const std::vector<UnitTraffic> traffic =
      traffic_of(training_shape(run.plan, run.store, run.mesh, micro_steps_of(run), run.config.parallel.overlap));
  std::vector<UnitRow> rows;
  for (std::size_t unit = 0; unit < run.plan.units.size(); ++unit) {
    const UnitSpec& spec = run.plan.units[unit];
    const FlatLayout layout(spec, world);
    const bool whole = run.mesh.shard_size() == 1 || (!run.store.whole_units.empty() && run.store.whole_units[unit]);
    UnitRow row{spec.name, 1, std::ssize(spec.tensors), layout.elements()};
    row.full = float_bytes(layout.padded_elements());
    row.kept = whole ? row.full : float_bytes(layout.block_elements() * run.mesh.replicas());
    row.gathers = whole ? 0 : traffic[unit].gathers;  // what lies there whole is not collected
    row.buckets = world == 1 ? 0 : traffic[unit].buckets;
    rows.push_back(std::move(row));
  }
  return rows;
}

// Neighbours that differ in their number only, such as layers, become one row.
std::vector<UnitRow> folded(const std::vector<UnitRow>& rows) {
  std::vector<UnitRow> out;
  std::string last;
  for (const UnitRow& row : rows) {
    const std::size_t dot = row.name.find('.');
    const bool same_kind = dot != std::string::npos && row.name.compare(0, dot + 1, last, 0, dot + 1) == 0;
    if (!out.empty() && same_kind && out.back().like(row)) {
      ++out.back().units;
      out.back().name = out.back().name.substr(0, out.back().name.find(" to ")) + " to " + row.name.substr(dot + 1);
    } else {
      out.push_back(row);
    }
    last = row.name;
  }
  return out;
}

void print_row(const UnitRow& row) {
  fmt::print("{:<18} {:>5} {:>8} {:>14} {:>12} {:>12} {:>8} {:>8}\n", row.name, row.units, row.tensors, row.parameters,
             human_bytes(row.full), human_bytes(row.kept), row.gathers, row.buckets);
}

void print_total(const std::vector<UnitRow>& rows) {
  UnitRow total;
  total.name = "total";
  total.units = 0;
  for (const UnitRow& row : rows) {
    total.units += row.units;
    total.tensors += row.tensors;
    total.parameters += row.parameters;
    total.full += row.full;
    total.kept += row.kept;
    total.gathers += row.gathers;
    total.buckets += row.buckets;
  }
  print_row(total);
}

void print_tensors(const UnitSpec& unit, const FlatLayout& layout) {
  for (std::size_t i = 0; i < unit.tensors.size(); ++i) {
    const TensorSpec& tensor = unit.tensors[i];
    std::string shape, names = tensor.name;
    for (const std::int64_t extent : tensor.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(extent);
    for (const std::string& alias : tensor.aliases) names += " = " + alias;
    fmt::print("    {:<52} {:>16} at {:>12}{}\n", names, shape, layout.tensor_offset(i),
               tensor.decay ? "" : "  no decay");
  }
}

}  // namespace

void print_units(const PlannedRun& run, bool tensors) {
  const std::vector<UnitRow> rows = unit_rows(run);
  fmt::print("{:<18} {:>5} {:>8} {:>14} {:>12} {:>12} {:>8} {:>8}\n", "unit (one of)", "units", "tensors", "parameters",
             "full", "on a rank", "gathers", "buckets");
  if (tensors) {
    for (std::size_t unit = 0; unit < rows.size(); ++unit) {
      print_row(rows[unit]);
      print_tensors(run.plan.units[unit], FlatLayout(run.plan.units[unit], run.mesh.world().world_size()));
    }
  } else {
    for (const UnitRow& row : folded(rows)) print_row(row);
  }
  print_total(rows);
}

void print_step(const PlannedRun& run) {
  const double tokens = static_cast<double>(run.config.train.global_batch * run.config.data.seq_len);
  const std::int64_t micro_steps = micro_steps_of(run);
  fmt::print("\nstep: {} tokens in {} micro-step(s), {:.3g} floating-point operations (6N + 6Lhs)\n", tokens,
             micro_steps, flops_per_token(run.plan.config, run.config.data.seq_len) * tokens);
  const UpdateNeeds update = update_needs(run.config.optim, run.store, run.mesh);
  const std::uint64_t floats = floats_sent_by_step(run.plan, run.store, run.mesh, run.order, micro_steps);
  fmt::print("sent to other nodes by a rank in a step: {} (sums in {} order)\n",
             human_bytes(sizeof(float) * (floats + update.floats_sent)),
             run.order == SumOrder::rank ? "rank" : "hierarchical");
}

void print_memory(const PlannedRun& run, std::uint64_t node_has) {
  const StorePlan& store = run.store;
  const Topology& topology = run.mesh.world();
  const std::uint64_t state = state_bytes(store, topology.world_size());
  const std::uint64_t activations =
      ModelRunner::activation_bytes(run.plan, run.config.train.micro_batch, run.config.data.seq_len, true);
  const std::uint64_t update = update_needs(run.config.optim, store, run.mesh).most_bytes;
  const std::string moments =
      store.second.empty() ? fmt::format("{} moment(s)", store.moments) : "a moment and for some tensors a second";
  fmt::print("memory of a rank: {} of shards (parameters, {}, {}gradient sums), {} of activations\n",
             human_bytes(state), moments, store.ema ? "averaged weights, " : "", human_bytes(activations));
  if (update > 0)
    fmt::print("                  and {} to orthogonalise matrices (on the rank that needs most)\n",
               human_bytes(update));
  const std::uint64_t rank = state + activations + update, slots = slot_bytes_of_node(store, run.mesh, run.order);
  const auto ranks = static_cast<std::uint64_t>(topology.world_size() / topology.node_count());
  const std::uint64_t node = ranks * rank + slots;
  fmt::print("memory of a node: {} rank(s) x {} and {} of slots for gathered units and gradients = {}\n", ranks,
             human_bytes(rank), human_bytes(slots), human_bytes(node));
  const std::optional<std::uint64_t> has = node_has > 0 ? std::optional(node_has) : available_memory();
  if (!has) return;
  const char* whose = node_has > 0 ? "a node has" : "this machine has";
  if (node <= *has) {
    fmt::print("enough: {} {}\n", whose, human_bytes(*has));
  } else {
    fmt::print("NOT enough: {} {}, {} less\n", whose, human_bytes(*has), human_bytes(node - *has));
  }
}

}  // namespace lamina
