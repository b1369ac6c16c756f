#include <algorithm>
#include <numeric>
#include <tuple>

#include <lamina/base/check.hpp>
#include <lamina/topology/mesh.hpp>

namespace lamina {

namespace {

std::vector<int> replicas_of(int rank, const std::vector<int>& index_of, const std::vector<std::vector<int>>& groups) {
  std::vector<int> ranks;
  for (const auto& group : groups) {
    for (const int member : group) {
      if (index_of[static_cast<std::size_t>(member)] == index_of[static_cast<std::size_t>(rank)])
        ranks.push_back(member);
    }
  }
  return ranks;
}

std::vector<int> world_blocks(const std::vector<int>& group_of, const std::vector<int>& index_of, int replicas) {
  std::vector<int> blocks(group_of.size());
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) blocks[rank] = index_of[rank] * replicas + group_of[rank];
  return blocks;
}

std::vector<int> in_order(std::size_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

Mesh::Groups Mesh::make_groups(const Topology& topology, int shard_size) {
  const int world = topology.world_size();
  require(shard_size >= 1 && world % shard_size == 0, "Mesh: the shard size divides the world");
  std::vector<int> order = in_order(static_cast<std::size_t>(world));
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::make_tuple(topology.node_of(a), topology.local_of(a)) <
           std::make_tuple(topology.node_of(b), topology.local_of(b));
  });
  Groups groups;
  groups.group_of.resize(order.size());
  groups.index_of.resize(order.size());
  for (auto first = order.begin(); first != order.end(); first += shard_size) {
    std::vector<int> ranks(first, first + shard_size);
    std::sort(ranks.begin(), ranks.end());
    const Topology group = topology.subset(ranks, ranks.front());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      groups.group_of[static_cast<std::size_t>(ranks[i])] = static_cast<int>(groups.shard.size());
      groups.index_of[static_cast<std::size_t>(ranks[i])] = group.block_of(static_cast<int>(i));
    }
    groups.shard.push_back(std::move(ranks));
  }
  return groups;
}

Mesh::Mesh(const Topology& topology, int shard_size) : Mesh(topology, make_groups(topology, shard_size)) {}

Mesh::Mesh(const Topology& topology, const Groups& groups)
    : shard_ranks_(groups.shard[static_cast<std::size_t>(groups.group_of[static_cast<std::size_t>(topology.rank())])]),
      replica_ranks_(replicas_of(topology.rank(), groups.index_of, groups.shard)),
      world_(
          topology.with_blocks(world_blocks(groups.group_of, groups.index_of, static_cast<int>(groups.shard.size())))),
      shard_group_(topology.subset(shard_ranks_, topology.rank())),
      replica_group_(topology.subset(replica_ranks_, topology.rank()).with_blocks(in_order(replica_ranks_.size()))) {}

}  // namespace lamina
