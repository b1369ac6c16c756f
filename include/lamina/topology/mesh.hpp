// How the ranks of a run are arranged for sharding: shard groups that hold one copy of the weights between them, and
// replica groups of the ranks that hold the same part. Values; pure arithmetic.
#pragma once

#include <vector>

#include <lamina/topology/topology.hpp>

namespace lamina {

class Mesh {
 public:
  // Shard groups of `shard_size` ranks, neighbours in the order of nodes. shard_size divides the world (InternalError
  // otherwise): 1 replicates the weights on every rank, the world's size makes one group of all.
  Mesh(const Topology& topology, int shard_size);

  // The world with the blocks of this mesh: a rank's blocks of all groups nest, so that block b of the world lies
  // inside the part that its owner's shard group gives it. With one group this is local-major order
  // (Topology::block_of).
  [[nodiscard]] const Topology& world() const { return world_; }
  // This rank's groups, as topologies of their own; `shard_ranks` and `replica_ranks` list their members as world
  // ranks, in group order.
  [[nodiscard]] const Topology& shard_group() const { return shard_group_; }
  [[nodiscard]] const Topology& replica_group() const { return replica_group_; }
  [[nodiscard]] const std::vector<int>& shard_ranks() const { return shard_ranks_; }
  [[nodiscard]] const std::vector<int>& replica_ranks() const { return replica_ranks_; }

  [[nodiscard]] int shard_size() const { return shard_group_.world_size(); }
  [[nodiscard]] int replicas() const { return replica_group_.world_size(); }
  // Which of the shard_size parts this rank keeps, and which of the replicas it is.
  [[nodiscard]] int shard_index() const { return shard_group_.block_of(shard_group_.rank()); }
  [[nodiscard]] int replica_index() const { return replica_group_.rank(); }

 private:
  struct Groups {
    std::vector<std::vector<int>> shard;  // by group
    std::vector<int> group_of, index_of;  // by rank: its group, and its part inside it
  };
  Mesh(const Topology& topology, const Groups& groups);
  static Groups make_groups(const Topology& topology, int shard_size);

  std::vector<int> shard_ranks_, replica_ranks_;
  Topology world_, shard_group_, replica_group_;
};

}  // namespace lamina
