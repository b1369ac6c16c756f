// Messages between any two ranks of a fabric.
#include <chrono>
#include <vector>

#include <lamina/comm/fabric_registry.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

const mpi::Communicator& world() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(60));
  return comm;
}

Topology topology_of(const std::vector<int>& nodes) {
  return {world().rank(), nodes, std::vector<std::string>(nodes.size(), mpi::Communicator::host_name())};
}

std::vector<int> one_node() { return std::vector<int>(static_cast<std::size_t>(world().size()), 0); }

std::vector<int> uneven_nodes() {
  std::vector<int> nodes = one_node();
  for (std::size_t rank = 1; rank < nodes.size(); ++rank) nodes[rank] = 1;
  return nodes;
}

// Messages `from` -> `to`: their sizes, different for every pair; some are empty.
std::vector<std::size_t> sizes(int from, int to) {
  const auto base = static_cast<std::size_t>(7 * from + 3 * to);
  return {base, 1, 0, 1000 * base + 5};
}

float value(int from, int to, std::size_t message, std::size_t i) {
  return static_cast<float>(100000 * from + 10000 * to + 1000 * static_cast<int>(message)) +
         static_cast<float>(i % 997);
}

TEST(Exchange, EverybodyWithEverybody) {
  for (const auto& nodes : {one_node(), uneven_nodes()}) {
    const Topology topology = topology_of(nodes);
    const auto fabric = make_fabric("mpi", world(), topology, SumOrder::rank);
    for (int round = 0; round < 3; ++round) {
      std::vector<std::vector<float>> out, in;
      std::vector<FloatSend> sends;
      std::vector<FloatReceive> receives;
      std::uint64_t to_other_nodes = 0;
      out.reserve(100);
      in.reserve(100);
      for (int other = 0; other < world().size(); ++other) {
        if (other == world().rank()) continue;
        for (std::size_t message = 0; message < 4; ++message) {
          std::vector<float>& data = out.emplace_back(sizes(world().rank(), other)[message]);
          for (std::size_t i = 0; i < data.size(); ++i) data[i] = value(world().rank(), other, message, i);
          sends.push_back({other, data});
          if (topology.node_of(other) != topology.node()) to_other_nodes += data.size();
          in.emplace_back(sizes(other, world().rank())[message], -1.0F);
          receives.push_back({other, in.back()});
        }
      }
      const std::uint64_t before = fabric->floats_sent();
      fabric->exchange(sends, receives);
      EXPECT_EQ(fabric->floats_sent() - before, to_other_nodes);
      std::size_t at = 0;
      for (const FloatReceive& receive : receives) {
        const std::size_t message = at++ % 4;
        for (std::size_t i = 0; i < receive.data.size(); ++i) {
          ASSERT_EQ(receive.data[i], value(receive.from, world().rank(), message, i));
        }
      }
    }
  }
}

// A chain: the first only sends, the last only receives; with one rank nobody does anything.
TEST(Exchange, RanksWithNothingNeedNotCall) {
  const auto fabric = make_fabric("mpi", world(), topology_of(one_node()), SumOrder::rank);
  const std::vector<float> mine{static_cast<float>(world().rank())};
  std::vector<float> theirs{-1};
  std::vector<FloatSend> sends;
  std::vector<FloatReceive> receives;
  if (world().rank() + 1 < world().size()) sends.push_back({world().rank() + 1, mine});
  if (world().rank() > 0) receives.push_back({world().rank() - 1, theirs});
  if (!sends.empty() || !receives.empty()) fabric->exchange(sends, receives);
  EXPECT_EQ(theirs[0], static_cast<float>(world().rank() - 1));
  fabric->exchange({}, {});
}

TEST(Exchange, NotWithOneself) {
  const auto fabric = make_fabric("mpi", world(), topology_of(one_node()), SumOrder::rank);
  std::vector<float> data(3);
  const FloatSend send{world().rank(), data};
  const FloatReceive receive{world().rank(), data};
  EXPECT_ANY_THROW(fabric->exchange(std::span(&send, 1), {}));
  EXPECT_ANY_THROW(fabric->exchange({}, std::span(&receive, 1)));
}

}  // namespace
}  // namespace lamina
