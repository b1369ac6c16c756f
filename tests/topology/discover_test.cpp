#include <lamina/base/error.hpp>
#include <lamina/topology/discover.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

TEST(Discover, OneMachineIsOneNode) {
  const mpi::Communicator world = mpi::Communicator::world(std::chrono::seconds(60));
  const Topology topology = discover_topology(world, 0);
  EXPECT_EQ(topology.node_count(), 1);
  EXPECT_EQ(topology.local_size(), world.size());
  EXPECT_EQ(topology.local_rank(), world.rank());
}

TEST(Discover, PretendedNodesSplitTheWorld) {
  const mpi::Communicator world = mpi::Communicator::world(std::chrono::seconds(60));
  const Topology topology = discover_topology(world, world.size());
  EXPECT_EQ(topology.node_count(), world.size());
  EXPECT_EQ(topology.local_size(), 1);
  if (world.size() % 2 == 0) {
    EXPECT_EQ(discover_topology(world, 2).local_size(), world.size() / 2);
  }
  EXPECT_THROW(static_cast<void>(discover_topology(world, world.size() + 1)), UsageError);
}

TEST(Discover, PlacementsListEveryRankWithItsCores) {
  const mpi::Communicator world = mpi::Communicator::world(std::chrono::seconds(60));
  const Topology topology = discover_topology(world, 0);
  const auto placements = gather_placements(world, topology, 1);
  ASSERT_EQ(static_cast<int>(placements.size()), world.size());
  for (const RankPlacement& place : placements) EXPECT_FALSE(place.cores.empty());
}

}  // namespace
}  // namespace lamina
