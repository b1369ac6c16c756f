// `lamina plan`: what a run would do, from the config alone, without starting it.
#include "commands.hpp"
#include "plan_simulation.hpp"

#include <algorithm>
#include <cstdio>

#include <lamina/base/text.hpp>
#include <lamina/comm/traffic.hpp>
#include <lamina/config/argument_parser.hpp>
#include <lamina/config/command_line.hpp>
#include <lamina/config/validate.hpp>
#include <lamina/model/model_config.hpp>
#include <lamina/model/model_runner.hpp>
#include <lamina/optim/optimizer.hpp>
#include <lamina/shard/flat_layout.hpp>
#include <lamina/train/step_plan.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

struct PlanArguments {
  std::int64_t ranks = 1, nodes = 1;
  bool tensors = false, simulate = false;
  SimulationRates rates;
};

// Moves plan's own options, with their values, out of `arguments`; the rest are train's.
std::vector<std::string> extract_own(std::vector<std::string>& arguments) {
  const std::vector<std::string_view> valued{"--ranks",      "--nodes",      "--gather_gbs",
                                             "--reduce_gbs", "--latency_us", "--gflops"};
  std::vector<std::string> mine, rest;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    const bool takes_value = std::ranges::find(valued, name) != valued.end();
    const bool is_mine = takes_value || name == "--tensors" || name == "--simulate";
    (is_mine ? mine : rest).push_back(word);
    if (takes_value && name == word && i + 1 < arguments.size()) mine.push_back(arguments[++i]);
  }
  arguments = rest;
  return mine;
}

PlanArguments take_own(std::vector<std::string>& arguments) {
  PlanArguments own;
  ArgumentParser parser("lamina plan", "");
  parser.option("ranks", own.ranks, "N", "", {1, 1'000'000});
  parser.option("nodes", own.nodes, "N", "", {1, 1'000'000});
  parser.flag("tensors", own.tensors, "");
  parser.flag("simulate", own.simulate, "");
  parser.option("gather_gbs", own.rates.gather_gbs, "X", "");
  parser.option("reduce_gbs", own.rates.reduce_gbs, "X", "");
  parser.option("latency_us", own.rates.latency_us, "X", "");
  parser.option("gflops", own.rates.gflops, "X", "");
  static_cast<void>(parser.parse(extract_own(arguments)));
  for (const char* rate : {"gather_gbs", "reduce_gbs", "latency_us", "gflops"}) {
    if (parser.given(rate) && !own.simulate)
      throw UsageError(one_line(fmt::format("--{} changes nothing", rate), "it is a rate of the simulation",
                                "add --simulate or leave it out"));
  }
  check_rates(own.rates);
  return own;
}

Topology planned_topology(const PlanArguments& plan) {
  if (plan.ranks % plan.nodes != 0) {
    throw UsageError(one_line(fmt::format("--nodes {} does not divide --ranks {}", plan.nodes, plan.ranks),
                              "the plan is for equal nodes", "choose ranks as a multiple of nodes"));
  }
  std::vector<int> nodes;
  std::vector<std::string> hosts;
  for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
    nodes.push_back(static_cast<int>(rank / (plan.ranks / plan.nodes)));
    hosts.push_back(fmt::format("node{}", nodes.back()));
  }
  return {0, nodes, hosts};
}

std::int64_t micro_steps_of(const RunConfig& config, const Topology& topology) {
  return config.train.global_batch / (config.train.micro_batch * topology.world_size());
}

// The last two columns: of a whole step.
void print_units(const RunConfig& config, const ModelPlan& plan, const StorePlan& store, const Mesh& mesh,
                 bool tensors) {
  const Topology& topology = mesh.world();
  const std::vector<UnitTraffic> traffic =
      traffic_of(training_shape(plan, store, mesh, micro_steps_of(config, topology), config.parallel.overlap));
  fmt::print("{:<14} {:>8} {:>14} {:>12} {:>12} {:>9} {:>9}\n", "unit", "tensors", "parameters", "full", "a shard",
             "gathers", "buckets");
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
    const FlatLayout layout(plan.units[unit], topology.world_size());
    fmt::print("{:<14} {:>8} {:>14} {:>12} {:>12} {:>9} {:>9}\n", plan.units[unit].name,
               plan.units[unit].tensors.size(), layout.elements(),
               human_bytes(static_cast<std::uint64_t>(layout.padded_elements()) * sizeof(float)),
               human_bytes(static_cast<std::uint64_t>(layout.block_elements()) * sizeof(float)), traffic[unit].gathers,
               traffic[unit].buckets);
    for (std::size_t i = 0; tensors && i < plan.units[unit].tensors.size(); ++i) {
      const TensorSpec& tensor = plan.units[unit].tensors[i];
      std::string shape, names = tensor.name;
      for (const std::int64_t extent : tensor.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(extent);
      for (const std::string& alias : tensor.aliases) names += " = " + alias;
      fmt::print("    {:<52} {:>16} at {:>12}{}\n", names, shape, layout.tensor_offset(i),
                 tensor.decay ? "" : "  no decay");
    }
  }
}

void print_step(const RunConfig& config, const ModelPlan& plan, const StorePlan& store, const Mesh& mesh,
                SumOrder order) {
  const Topology& topology = mesh.world();
  const std::int64_t micro_steps = micro_steps_of(config, topology);
  const double tokens = static_cast<double>(config.train.global_batch * config.data.seq_len);
  fmt::print("\nstep: {} tokens in {} micro-step(s), {:.3g} floating-point operations (6N + 6Lhs)\n", tokens,
             micro_steps, flops_per_token(plan.config, config.data.seq_len) * tokens);
  const std::string moments =
      store.second.empty() ? fmt::format("{} moment(s)", store.moments) : "a moment and for some tensors a second";
  fmt::print("memory of a rank: {} of shards (parameters, {}, {}gradient sums), {} of activations\n",
             human_bytes(state_bytes(store, topology.world_size())), moments, store.ema ? "averaged weights, " : "",
             human_bytes(ModelRunner::activation_bytes(plan, config.train.micro_batch, config.data.seq_len, true)));
  const UpdateNeeds update = update_needs(config.optim, store, mesh);
  if (update.most_bytes > 0) {
    fmt::print("                  and {} to orthogonalise matrices (on the rank that needs most)\n",
               human_bytes(update.most_bytes));
  }
  fmt::print("memory of a node: {} of slots for gathered units and gradients\n",
             human_bytes(slot_bytes_of_node(store, mesh, order)));
  fmt::print(
      "sent to other nodes by a rank in a step: {} (sums in {} order)\n",
      human_bytes(sizeof(float) * (floats_sent_by_step(plan, store, mesh, order, micro_steps) + update.floats_sent)),
      order == SumOrder::rank ? "rank" : "hierarchical");
}

void print_help(const std::string& of_train) {
  const SimulationRates rates;
  fmt::print(
      "{}\nOptions of plan itself:\n"
      "  --ranks N   ranks to plan for (default 1)\n"
      "  --nodes N   nodes they are on (default 1)\n"
      "  --tensors   list the tensors of each unit, with their shapes and offsets\n"
      "  --simulate  time a micro-step with and without overlap, and over sizes of reduction buckets, assuming\n"
      "  --gather_gbs X   GB/s that reach a rank in a gather (default {:g})\n"
      "  --reduce_gbs X   GB/s that reach a rank in a reduction (default {:g})\n"
      "  --latency_us X   microseconds that each message costs besides (default {:g})\n"
      "  --gflops X       GFLOP/s of a rank (default {:g})\n",
      of_train, rates.gather_gbs, rates.reduce_gbs, rates.latency_us, rates.gflops);
}

}  // namespace

int plan_command(std::vector<std::string> arguments) {
  const PlanArguments own = take_own(arguments);
  const RunArguments run = parse_run_arguments("lamina plan", arguments);
  if (run.print_instead) {
    print_help(*run.print_instead);
    return 0;
  }
  check_config(run.config, own.ranks);
  const Topology topology = planned_topology(own);
  const ModelPlan plan =
      make_model_plan(read_model_config(run.config.model.path), parse_unit_rule(run.config.parallel.units));
  const SumOrder order = sum_order(run.config.reduction, topology);
  StorePlan store = make_store_plan(run.config.parallel, store_units(plan), topology, order);
  plan_state(store, run.config.optim);
  static_cast<void>(make_optimizer(run.config.optim, plan.units));  // refuses groups that match nothing
  const Mesh mesh(topology, store.shard_size);
  fmt::print("{} on {} rank(s), {} node(s), strategy {}, shard groups of {}, prefetch {}\n\n", run.config.model.path,
             own.ranks, own.nodes, name_of(run.config.parallel.strategy), mesh.shard_size(),
             run.config.parallel.prefetch);
  print_units(run.config, plan, store, mesh, own.tensors);
  print_step(run.config, plan, store, mesh, order);
  if (own.simulate) print_simulation(own.rates, run.config, plan, store, mesh);
  return 0;
}

}  // namespace lamina
