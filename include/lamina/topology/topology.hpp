// Who is where: ranks, nodes, local ranks, rails, and which block of a unit each rank owns. Values; pure arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lamina {

class Topology {
 public:
  // node_of_rank[r]: any ids, equal for ranks that share memory. Nodes are numbered by their lowest rank, local ranks
  // by rank order. Throws InternalError when empty or `rank` is outside.
  Topology(int rank, const std::vector<int>& node_of_rank, std::vector<std::string> host_of_rank);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int world_size() const { return static_cast<int>(node_of_rank_.size()); }
  [[nodiscard]] int node_count() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] int node() const { return node_of(rank_); }
  [[nodiscard]] int local_rank() const { return local_of(rank_); }
  [[nodiscard]] int local_size() const { return static_cast<int>(ranks_of_node(node()).size()); }
  [[nodiscard]] int node_of(int rank) const { return node_of_rank_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int local_of(int rank) const { return local_of_rank_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const std::string& host_of(int rank) const { return host_of_rank_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const std::vector<int>& ranks_of_node(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] bool equal_nodes() const;

  // The block of every unit that `rank` owns: local-major. With N equal nodes rank (node n, local g) owns block g*N +
  // n, so the blocks of one rail (same g everywhere) are neighbours; with unequal nodes blocks follow the same order
  // (by local rank, then node) without gaps.
  [[nodiscard]] int block_of(int rank) const { return block_of_rank_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int owner_of(int block) const { return rank_of_block_[static_cast<std::size_t>(block)]; }

  // The same ranks with other blocks: a permutation of [0, world_size).
  [[nodiscard]] Topology with_blocks(std::vector<int> block_of_rank) const;
  // The topology of some ranks, renumbered in the order given; its own rank is `rank`, one of them (numbered as here).
  [[nodiscard]] Topology subset(const std::vector<int>& ranks, int rank) const;

  // The rank on `node` that exchanges data with `rank`: its partner on the rail (same local rank), wrapped round where
  // that node has fewer ranks.
  [[nodiscard]] int rail_partner(int rank, int node) const;

 private:
  int rank_;
  std::vector<int> node_of_rank_, local_of_rank_, block_of_rank_, rank_of_block_;
  std::vector<std::string> host_of_rank_;
  std::vector<std::vector<int>> nodes_;
};

}  // namespace lamina
