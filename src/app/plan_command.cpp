// `lamina plan`: what a run would do, from the config alone, without starting it.
#include "commands.hpp"
#include "plan_report.hpp"
#include "plan_simulation.hpp"
#include "run_inputs.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <lamina/backends/backend.hpp>
#include <lamina/base/log.hpp>
#include <lamina/config/argument_parser.hpp>
#include <lamina/config/command_line.hpp>
#include <lamina/train/step_plan.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

struct PlanArguments {
  std::int64_t ranks = 1, nodes = 1;
  double memory_gib = 0;
  bool tensors = false, simulate = false, without_data = false;
  SimulationRates rates;
};

ArgumentParser own_parser(PlanArguments& own) {
  ArgumentParser parser("lamina plan", "");
  parser.option("ranks", own.ranks, "N", "ranks to plan for", {1, 1'000'000});
  parser.option("nodes", own.nodes, "N", "nodes they are on", {1, 1'000'000});
  parser.option("memory_gib", own.memory_gib, "X", "memory of a node; 0: what this machine has left");
  parser.flag("without_data", own.without_data, "do not open the data and the tokenizer: they are not on this machine");
  parser.flag("tensors", own.tensors, "list the tensors of each unit, with their shapes and offsets");
  parser.flag("simulate", own.simulate,
              "time a micro-step with and without overlap, and over sizes of reduction buckets, assuming");
  parser.option("gather_gbs", own.rates.gather_gbs, "X", "GB/s that reach a rank in a gather");
  parser.option("reduce_gbs", own.rates.reduce_gbs, "X", "GB/s that reach a rank in a reduction");
  parser.option("latency_us", own.rates.latency_us, "X", "microseconds that each message costs besides");
  parser.option("gflops", own.rates.gflops, "X", "GFLOP/s of a rank");
  return parser;
}

// Moves plan's own options, with their values, out of `arguments`; the rest are train's.
std::vector<std::string> extract_own(std::vector<std::string>& arguments) {
  const std::vector<std::string_view> valued{"--ranks",      "--nodes",      "--memory_gib", "--gather_gbs",
                                             "--reduce_gbs", "--latency_us", "--gflops"};
  const std::vector<std::string_view> flags{"--without_data", "--tensors", "--simulate"};
  std::vector<std::string> mine, rest;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    const bool takes_value = std::ranges::find(valued, name) != valued.end();
    const bool is_mine = takes_value || std::ranges::find(flags, name) != flags.end();
    (is_mine ? mine : rest).push_back(word);
    if (takes_value && name == word && i + 1 < arguments.size()) mine.push_back(arguments[++i]);
  }
  arguments = rest;
  return mine;
}

PlanArguments take_own(std::vector<std::string>& arguments) {
  PlanArguments own;
  ArgumentParser parser = own_parser(own);
  static_cast<void>(parser.parse(extract_own(arguments)));
  for (const char* rate : {"gather_gbs", "reduce_gbs", "latency_us", "gflops"}) {
    if (parser.given(rate) && !own.simulate)
      throw UsageError(one_line(fmt::format("--{} changes nothing", rate), "it is a rate of the simulation",
                                "add --simulate or leave it out"));
  }
  if (own.memory_gib < 0 || own.memory_gib > 1e9) {
    throw UsageError(one_line(fmt::format("--memory_gib is {}", own.memory_gib), "it is the memory of one node in GiB",
                              "give a number such as 512"));
  }
  check_rates(own.rates);
  return own;
}

RunHelp plan_help() {
  PlanArguments defaults;
  return {
      "Units, memory and traffic of a run, checked as train would check it, without starting it. CONFIG may also be "
      "a model folder (or a run folder, whose config.ini is taken): then no data are needed.",
      own_parser(defaults).options_text(),
      {"lamina plan inputs/small.ini --ranks 8 --nodes 2",
       "lamina plan inputs/small_llama --ranks 16 --nodes 4 --memory_gib 256",
       "lamina plan inputs/small.ini --ranks 8 --parallel.strategy hybrid --nodes 2 --simulate"}};
}

// What CONFIG names: also a model folder or a run folder. A model alone says nothing of batches: each of the `ranks`
// gets a sequence.
RunConfig load_planned(const std::filesystem::path& path, std::int64_t ranks) {
  if (!std::filesystem::is_directory(path)) return load_run_config(path);
  if (std::filesystem::exists(path / "config.ini")) return load_run_config(path / "config.ini");
  if (!std::filesystem::exists(path / "config.json")) {
    throw UsageError(one_line(fmt::format("cannot plan for the folder {}", path.string()),
                              "it holds neither a config.ini nor a config.json",
                              "name a config file, a run folder or a model folder"));
  }
  RunConfig config;
  config.model.path = path.string();
  config.train.global_batch = ranks;
  return config;
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

}  // namespace

int plan_command(std::vector<std::string> arguments) {
  const PlanArguments own = take_own(arguments);
  const RunArguments run = parse_run_arguments("lamina plan", arguments, plan_help(),
                                               [&](const auto& path) { return load_planned(path, own.ranks); });
  if (run.print_instead) {
    std::fputs(run.print_instead->c_str(), stdout);
    return 0;
  }
  const bool no_data = own.without_data || run.config.data.train.empty();
  const RunInputs inputs = read_run_inputs(run.config, own.ranks, no_data ? NeedsData::no : NeedsData::yes);
  for (const std::string& warning : inputs.plan.config.warnings) log_warn(warning);
  static_cast<void>(make_backend(run.config.compute.backend, 1));  // refuses what this build does not contain
  const Topology topology = planned_topology(own);
  const SumOrder order = sum_order(run.config.reduction, topology);
  StorePlan store = make_store_plan(run.config.parallel, store_units(inputs.plan), topology, order);
  plan_state(store, run.config.optim);
  const Mesh mesh(topology, store.shard_size);
  fmt::print("{} on {} rank(s), {} node(s), strategy {}, shard groups of {}, prefetch {}\n", run.config.model.path,
             own.ranks, own.nodes, name_of(run.config.parallel.strategy), mesh.shard_size(),
             run.config.parallel.prefetch);
  fmt::print("{}\n\n", no_data ? "data: not looked at" : inputs.data->description());
  const PlannedRun planned{run.config, inputs.plan, store, mesh, order};
  print_units(planned, own.tensors);
  print_step(planned);
  print_memory(planned, static_cast<std::uint64_t>(own.memory_gib * 1024 * 1024 * 1024));
  if (own.simulate) print_simulation(own.rates, run.config, inputs.plan, store, mesh);
  return 0;
}

}  // namespace lamina
