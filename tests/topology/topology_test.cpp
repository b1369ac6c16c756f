#include <set>

#include <lamina/topology/discover.hpp>
#include <lamina/topology/mesh.hpp>
#include <lamina/topology/topology.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

Topology make(int rank, const std::vector<int>& nodes) {
  return {rank, nodes, std::vector<std::string>(nodes.size(), "host")};
}

TEST(Topology, NumbersNodesAndLocalRanks) {
  const Topology topology = make(3, {7, 7, 2, 2});
  EXPECT_EQ(topology.node_count(), 2);
  EXPECT_EQ(topology.node(), 1);
  EXPECT_EQ(topology.local_rank(), 1);
  EXPECT_EQ(topology.local_size(), 2);
  EXPECT_EQ(topology.ranks_of_node(0), (std::vector<int>{0, 1}));
  EXPECT_TRUE(topology.equal_nodes());
}

TEST(Topology, RoundRobinPlacementIsUnderstood) {
  const Topology topology = make(2, {0, 1, 0, 1});
  EXPECT_EQ(topology.node(), 0);
  EXPECT_EQ(topology.local_rank(), 1);
  EXPECT_EQ(topology.ranks_of_node(1), (std::vector<int>{1, 3}));
}

TEST(Topology, OwnershipIsLocalMajor) {
  const std::vector<int> nodes{0, 0, 0, 1, 1, 1};  // 2 nodes of 3
  for (int rank = 0; rank < 6; ++rank) {
    const Topology topology = make(rank, nodes);
    EXPECT_EQ(topology.block_of(rank), topology.local_rank() * 2 + topology.node());
  }
}

TEST(Topology, EveryBlockHasOneOwnerAlsoWithUnequalNodes) {
  for (const std::vector<int>& nodes :
       {std::vector<int>{0}, {0, 0, 0, 1}, {0, 1, 1, 1, 1}, {0, 1, 2}, {1, 0, 0, 2, 2, 2}}) {
    const Topology topology = make(0, nodes);
    std::set<int> owners;
    for (int block = 0; block < topology.world_size(); ++block) {
      owners.insert(topology.owner_of(block));
      EXPECT_EQ(topology.block_of(topology.owner_of(block)), block);
    }
    EXPECT_EQ(owners.size(), nodes.size());
  }
  EXPECT_FALSE(make(0, {0, 0, 0, 1}).equal_nodes());
}

TEST(Topology, RailPartnersHaveTheSameLocalRankOrWrap) {
  const Topology topology = make(0, {0, 0, 0, 1});
  EXPECT_EQ(topology.rail_partner(0, 1), 3);
  EXPECT_EQ(topology.rail_partner(2, 1), 3);
  EXPECT_EQ(topology.rail_partner(3, 0), 0);
}

TEST(Topology, RefusesNonsense) {
  EXPECT_ANY_THROW(make(4, {0, 0}));
  EXPECT_ANY_THROW(make(0, {}));
}

TEST(Placement, WarnsWhenThreadsOutnumberCores) {
  const std::vector<RankPlacement> crowded{{0, 0, 0, "a", {0, 1}, 2}, {1, 0, 1, "a", {0, 1}, 2}};
  ASSERT_EQ(placement_warnings(crowded).size(), 1u);
  EXPECT_NE(placement_warnings(crowded)[0].find("4 threads share 2 cores on a"), std::string::npos);
}

TEST(Placement, WarnsWhenRanksAreBoundToOneCoreWhileOthersIdle) {
  const std::vector<RankPlacement> bound{{0, 0, 0, "a", {0}, 1}, {1, 0, 1, "a", {0}, 1}, {2, 0, 2, "a", {1, 2, 3}, 1}};
  ASSERT_EQ(placement_warnings(bound).size(), 1u);
  EXPECT_NE(placement_warnings(bound)[0].find("rank 0"), std::string::npos);
}

TEST(Placement, SaysNothingWhenAllIsWell) {
  const std::vector<RankPlacement> good{{0, 0, 0, "a", {0}, 1}, {1, 0, 1, "a", {1}, 1}, {2, 1, 0, "b", {0}, 1}};
  EXPECT_TRUE(placement_warnings(good).empty());
  EXPECT_NE(placement_table(good).find("host"), std::string::npos);
}

// Every world block lies inside the part that its owner's shard group gives it, and groups divide the world.
TEST(Mesh, BlocksNestInsideParts) {
  for (const std::vector<int>& nodes : {std::vector<int>{0},
                                        {0, 0},
                                        {0, 0, 1, 1},
                                        {0, 1, 0, 1},
                                        {0, 0, 0, 1},
                                        {0, 0, 1, 1, 2, 2},
                                        {0, 1, 2, 0, 1, 2}}) {
    const auto world = static_cast<int>(nodes.size());
    for (int size = 1; size <= world; ++size) {
      if (world % size != 0) continue;
      for (int rank = 0; rank < world; ++rank) {
        const Mesh mesh(make(rank, nodes), size);
        EXPECT_EQ(mesh.shard_size(), size);
        EXPECT_EQ(mesh.replicas(), world / size);
        EXPECT_EQ(mesh.world().block_of(rank) / mesh.replicas(), mesh.shard_index());
        EXPECT_EQ(mesh.world().block_of(rank) % mesh.replicas(), mesh.replica_index());
        EXPECT_EQ(mesh.shard_ranks()[static_cast<std::size_t>(mesh.shard_group().rank())], rank);
        EXPECT_EQ(mesh.replica_ranks()[static_cast<std::size_t>(mesh.replica_group().rank())], rank);
        for (const int peer : mesh.replica_ranks())
          EXPECT_EQ(Mesh(make(peer, nodes), size).shard_index(), mesh.shard_index());
      }
    }
  }
}

TEST(Mesh, NodesAreShardGroupsWhenTheSizeIsTheNodes) {
  const Mesh mesh(make(3, {0, 0, 1, 1}), 2);
  EXPECT_EQ(mesh.shard_ranks(), (std::vector<int>{2, 3}));
  EXPECT_EQ(mesh.replica_ranks(), (std::vector<int>{1, 3}));
  EXPECT_EQ(mesh.world().block_of(3), make(3, {0, 0, 1, 1}).block_of(3));  // local-major
  EXPECT_ANY_THROW(Mesh(make(0, {0, 0, 0}), 2));
}

}  // namespace
}  // namespace lamina
