#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/topology/topology.hpp>

namespace lamina {

Topology::Topology(int rank, const std::vector<int>& node_of_rank, std::vector<std::string> host_of_rank)
    : rank_(rank), host_of_rank_(std::move(host_of_rank)) {
  const auto world = static_cast<int>(node_of_rank.size());
  require(world > 0 && rank >= 0 && rank < world, "Topology: the rank lies inside the world");
  require(host_of_rank_.size() == node_of_rank.size(), "Topology: a host for each rank");
  std::map<int, int> number;  // given id -> node number, in order of lowest rank
  for (int r = 0; r < world; ++r) {
    const auto [entry, is_new] =
        number.try_emplace(node_of_rank[static_cast<std::size_t>(r)], static_cast<int>(nodes_.size()));
    if (is_new) nodes_.emplace_back();
    auto& ranks = nodes_[static_cast<std::size_t>(entry->second)];
    node_of_rank_.push_back(entry->second);
    local_of_rank_.push_back(static_cast<int>(ranks.size()));
    ranks.push_back(r);
  }
  rank_of_block_.resize(node_of_rank.size());
  std::iota(rank_of_block_.begin(), rank_of_block_.end(), 0);
  std::sort(rank_of_block_.begin(), rank_of_block_.end(), [&](int a, int b) {
    return std::make_tuple(local_of(a), node_of(a)) < std::make_tuple(local_of(b), node_of(b));
  });
  block_of_rank_.resize(node_of_rank.size());
  for (int block = 0; block < world; ++block) block_of_rank_[static_cast<std::size_t>(owner_of(block))] = block;
}

bool Topology::equal_nodes() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [&](const auto& ranks) { return ranks.size() == nodes_.front().size(); });
}

Topology Topology::with_blocks(std::vector<int> block_of_rank) const {
  Topology result = *this;
  std::vector<int> owners(block_of_rank.size(), -1);
  require(block_of_rank.size() == node_of_rank_.size(), "Topology: a block for each rank");
  for (std::size_t rank = 0; rank < block_of_rank.size(); ++rank) {
    const int block = block_of_rank[rank];
    require(block >= 0 && block < world_size() && owners[static_cast<std::size_t>(block)] < 0,
            "Topology: blocks are a permutation");
    owners[static_cast<std::size_t>(block)] = static_cast<int>(rank);
  }
  result.block_of_rank_ = std::move(block_of_rank);
  result.rank_of_block_ = std::move(owners);
  return result;
}

Topology Topology::subset(const std::vector<int>& ranks, int rank) const {
  std::vector<int> nodes;
  std::vector<std::string> hosts;
  for (const int member : ranks) {
    nodes.push_back(node_of(member));
    hosts.push_back(host_of(member));
  }
  const auto own = std::find(ranks.begin(), ranks.end(), rank);
  require(own != ranks.end(), "Topology: the rank is one of the subset");
  return {static_cast<int>(own - ranks.begin()), nodes, std::move(hosts)};
}

int Topology::rail_partner(int rank, int node) const {
  const std::vector<int>& ranks = ranks_of_node(node);
  return ranks[static_cast<std::size_t>(local_of(rank)) % ranks.size()];
}

}  // namespace lamina
