#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <lamina/base/error.hpp>
#include <lamina/topology/discover.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

namespace lamina {

namespace {

std::vector<int> own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(static_cast<int>(core));
  }
  return cores;
}

// "0-3,8" for {0,1,2,3,8}.
std::string core_ranges(const std::vector<int>& cores) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t j = i;
    while (j + 1 < cores.size() && cores[j + 1] == cores[j] + 1) ++j;
    parts.push_back(i == j ? std::to_string(cores[i]) : fmt::format("{}-{}", cores[i], cores[j]));
    i = j + 1;
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string join_cores(const std::vector<int>& cores) { return fmt::format("{}", fmt::join(cores, " ")); }

std::vector<int> split_cores(const std::string& text) {
  std::istringstream in(text);
  std::vector<int> cores;
  for (int core = 0; in >> core;) cores.push_back(core);
  return cores;
}

}  // namespace

Topology discover_topology(const mpi::Communicator& world, std::int64_t pretend_nodes) {
  std::int64_t node = 0;
  if (pretend_nodes > 0) {
    if (world.size() % pretend_nodes != 0) {
      throw UsageError(
          one_line(fmt::format("run.pretend_nodes = {} does not divide {} ranks", pretend_nodes, world.size()),
                   "pretended nodes are equal", "choose a divisor"));
    }
    node = world.rank() / (world.size() / pretend_nodes);
  } else {
    // A node is known by the world rank of its first member.
    const mpi::Communicator shared = world.split_by_node();
    node = shared.min(world.rank(), "the node's ranks");
  }
  const std::vector<std::int64_t> gathered = world.all_gather(std::span(&node, 1), "the nodes of all ranks");
  const std::vector<int> nodes(gathered.begin(), gathered.end());
  return Topology(world.rank(), nodes, world.all_gather(mpi::Communicator::host_name(), "the hosts of all ranks"));
}

std::vector<RankPlacement> gather_placements(const mpi::Communicator& world, const Topology& topology,
                                             std::int64_t threads) {
  const std::vector<std::string> cores = world.all_gather(join_cores(own_cores()), "the cores of all ranks");
  std::vector<RankPlacement> placements;
  for (int rank = 0; rank < world.size(); ++rank) {
    placements.push_back({rank, topology.node_of(rank), topology.local_of(rank), topology.host_of(rank),
                          split_cores(cores[static_cast<std::size_t>(rank)]), threads});
  }
  return placements;
}

std::string placement_table(const std::vector<RankPlacement>& placements) {
  constexpr std::size_t most_rows = 16;  // the pattern is clear from the first ranks
  std::size_t width = 4;
  for (const RankPlacement& place : placements) width = std::max(width, place.host.size());
  std::string table =
      fmt::format("{:>6} {:>5} {:>6} {:<{}} {:>8}  {}", "rank", "node", "local", "host", width, "threads", "cores");
  for (std::size_t i = 0; i < std::min(most_rows, placements.size()); ++i) {
    const RankPlacement& place = placements[i];
    table += fmt::format("\n{:>6} {:>5} {:>6} {:<{}} {:>8}  {} ({})", place.rank, place.node, place.local_rank,
                         place.host, width, place.threads, place.cores.size(), core_ranges(place.cores));
  }
  if (placements.size() > most_rows) table += fmt::format("\n   ... and {} more ranks", placements.size() - most_rows);
  return table;
}

std::vector<std::string> placement_warnings(const std::vector<RankPlacement>& placements) {
  std::map<std::string, std::pair<std::set<int>, std::int64_t>> hosts;  // cores of a host, threads on it
  std::map<std::string, std::int64_t> masks;                            // threads within one affinity mask
  for (const RankPlacement& place : placements) {
    auto& [cores, threads] = hosts[place.host];
    cores.insert(place.cores.begin(), place.cores.end());
    threads += place.threads;
    masks[place.host + " cores " + core_ranges(place.cores)] += place.threads;
  }
  std::vector<std::string> warnings;
  for (const auto& [host, use] : hosts) {
    if (use.second > static_cast<std::int64_t>(use.first.size())) {
      warnings.push_back(
          fmt::format("{} threads share {} cores on {}: ranks will wait for each other; use fewer ranks or "
                      "threads, or more cores a task",
                      use.second, use.first.size(), host));
    }
  }
  if (!warnings.empty()) return warnings;
  for (const RankPlacement& place : placements) {
    const auto wanted = masks[place.host + " cores " + core_ranges(place.cores)];
    if (wanted > static_cast<std::int64_t>(place.cores.size())) {
      warnings.push_back(
          fmt::format("rank {} on {} is bound to {} core(s) that {} threads want; give each task as many cores "
                      "as it has threads (mpirun --map-by slot:PE=N, srun --cpus-per-task=N)",
                      place.rank, place.host, place.cores.size(), wanted));
      break;
    }
  }
  return warnings;
}

}  // namespace lamina
