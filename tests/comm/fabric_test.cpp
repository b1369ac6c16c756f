// The contract of a fabric, on one node and on pretended nodes with real messages between them.
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/comm/fabric_registry.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

using mpi::Communicator;

Communicator& world() {
  static Communicator comm = Communicator::world(std::chrono::seconds(120));
  return comm;
}

// Node of each rank for this world size: one node, as many nodes as ranks, halves in blocks, halves in turn, and 3 +
// rest.
std::vector<std::vector<int>> placements() {
  const auto size = static_cast<std::size_t>(world().size());
  std::vector<std::vector<int>> result{std::vector<int>(size, 0)};
  std::vector<int> each, halves, turns, uneven;
  for (int rank = 0; rank < world().size(); ++rank) {
    each.push_back(rank);
    halves.push_back(2 * rank / world().size());
    turns.push_back(rank % 2);
    uneven.push_back(rank < 3 ? 0 : 1);
  }
  result.insert(result.end(), {each, halves, turns, uneven});
  return result;
}

Topology topology_of(const std::vector<int>& nodes) {
  return {world().rank(), nodes, std::vector<std::string>(nodes.size(), Communicator::host_name())};
}

// A value that depends on everything, with a rounding error in sums.
float value(int rank, std::int64_t element, int round) {
  const auto mixed = static_cast<std::uint32_t>(rank * 7919 + element * 104729 + round * 1299709);
  return static_cast<float>(mixed % 100003) / 317.0F - 100.0F;
}

void random_pause(std::mt19937& random) {
  if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
}

TEST(Fabric, GathersEveryBlockIntoEverySlot) {
  for (const auto& nodes : placements()) {
    const Topology topology = topology_of(nodes);
    const auto fabric = make_fabric("mpi", world(), topology, SumOrder::rank);
    const std::int64_t block = 3000;
    fabric->allocate({block * world().size(), 2, 1});
    std::mt19937 random(static_cast<unsigned>(world().rank()));
    for (int round = 0; round < 8; ++round) {
      const int slot = round % 2;
      const auto size = static_cast<std::size_t>(round % 3 == 2 ? 1 : block);
      std::vector<float> own(size);
      const int own_block = topology.block_of(topology.rank());
      for (std::size_t i = 0; i < size; ++i) own[i] = value(own_block, static_cast<std::int64_t>(i), round);
      random_pause(random);
      const std::span<const float> full = fabric->gather(slot, own);
      std::fill(own.begin(), own.end(), -1.0F);  // may be reused at once
      random_pause(random);
      ASSERT_EQ(full.size(), size * static_cast<std::size_t>(world().size()));
      for (std::size_t i = 0; i < full.size(); ++i) {
        ASSERT_EQ(full[i], value(static_cast<int>(i / size), static_cast<std::int64_t>(i % size), round))
            << "element " << i;
      }
      random_pause(random);
      fabric->release(slot);
    }
  }
}

TEST(Fabric, RankOrderGivesTheBitsOfAPlainLoop) {
  for (const auto& nodes : placements()) {
    const Topology topology = topology_of(nodes);
    const auto fabric = make_fabric("mpi", world(), topology, SumOrder::rank);
    const std::int64_t block = 5001, elements = block * world().size();
    fabric->allocate({elements, 1, 2});
    std::vector<float> accumulator(static_cast<std::size_t>(block), 0.5F), expected = accumulator;
    std::mt19937 random(static_cast<unsigned>(world().rank()) + 99);
    for (int round = 0; round < 6; ++round) {
      const std::span<float> gradient = fabric->gradient(round % 2);
      for (std::int64_t i = 0; i < elements; ++i)
        gradient[static_cast<std::size_t>(i)] = value(topology.rank(), i, round);
      random_pause(random);
      // In one bucket, or in several that are cut anywhere.
      const std::int64_t buckets = round % 3 == 0 ? 1 : 5, size = elements / buckets + 1;
      for (std::int64_t end = elements; end > 0; end -= size) {
        random_pause(random);
        fabric->reduce_scatter(round % 2, std::max<std::int64_t>(0, end - size), end, accumulator);
      }
      for (int rank = 0; rank < world().size(); ++rank) {
        for (std::int64_t i = 0; i < block; ++i) {
          expected[static_cast<std::size_t>(i)] += value(rank, topology.block_of(topology.rank()) * block + i, round);
        }
      }
      ASSERT_EQ(accumulator, expected) << "round " << round;
    }
  }
}

TEST(Fabric, HierarchicalOrderSumsNodesFirst) {
  for (const auto& nodes : placements()) {
    const Topology topology = topology_of(nodes);
    const auto fabric = make_fabric("mpi", world(), topology, SumOrder::hierarchical);
    const std::int64_t block = 700, elements = block * world().size();
    fabric->allocate({elements, 1, 1});
    std::vector<float> accumulator(static_cast<std::size_t>(block), 0.25F), expected = accumulator;
    const std::span<float> gradient = fabric->gradient(0);
    for (std::int64_t i = 0; i < elements; ++i) gradient[static_cast<std::size_t>(i)] = value(topology.rank(), i, 0);
    fabric->reduce_scatter(0, 300, elements, accumulator);
    fabric->reduce_scatter(0, 0, 300, accumulator);
    for (std::int64_t i = 0; i < block; ++i) {
      const std::int64_t element = topology.block_of(topology.rank()) * block + i;
      for (int node = 0; node < topology.node_count(); ++node) {
        float sum = value(topology.ranks_of_node(node).front(), element, 0);
        for (std::size_t l = 1; l < topology.ranks_of_node(node).size(); ++l)
          sum += value(topology.ranks_of_node(node)[l], element, 0);
        expected[static_cast<std::size_t>(i)] += sum;
      }
    }
    EXPECT_EQ(accumulator, expected);
  }
}

TEST(Fabric, SlotsLargerThanASegment) {
  const std::vector<int> nodes = placements()[1];  // every rank a node: everything travels
  const Topology topology = topology_of(nodes);
  for (const SumOrder order : {SumOrder::rank, SumOrder::hierarchical}) {
    const auto fabric = make_fabric("mpi", world(), topology, order);
    const std::int64_t block = 700 * 1024, elements = block * world().size();
    fabric->allocate({elements, 1, 1});
    const std::span<float> gradient = fabric->gradient(0);
    for (std::int64_t i = 0; i < elements; ++i)
      gradient[static_cast<std::size_t>(i)] = static_cast<float>(i % 64 + topology.rank());
    std::vector<float> accumulator(static_cast<std::size_t>(block));
    fabric->reduce_scatter(0, 0, elements, accumulator);
    const int size = world().size();
    for (std::int64_t i = 0; i < block; ++i) {
      const auto element = topology.block_of(topology.rank()) * block + i;
      ASSERT_EQ(accumulator[static_cast<std::size_t>(i)],
                static_cast<float>(size * (element % 64) + size * (size - 1) / 2));
    }
  }
}

TEST(Fabric, CountsWhatItSendsToOtherNodes) {
  for (const auto& nodes : placements()) {
    const Topology topology = topology_of(nodes);
    const auto fabric = make_fabric("mpi", world(), topology, SumOrder::hierarchical);
    const std::int64_t block = 128;
    fabric->allocate({block * world().size(), 1, 1});
    static_cast<void>(fabric->gather(0, std::vector<float>(static_cast<std::size_t>(block))));
    fabric->release(0);
    EXPECT_EQ(fabric->floats_sent(), static_cast<std::uint64_t>(block * (topology.node_count() - 1)));
  }
}

TEST(Fabric, MisuseThrows) {
  const Topology topology = topology_of(placements()[0]);
  const auto fabric = make_fabric("mpi", world(), topology, SumOrder::rank);
  fabric->allocate({1024 * world().size(), 1, 1});
  EXPECT_ANY_THROW(fabric->allocate({1024, 1, 1}));
  EXPECT_ANY_THROW(fabric->release(0));
  EXPECT_ANY_THROW(static_cast<void>(fabric->gradient(1)));
}

TEST(Fabric, TooLittleSharedMemoryIsRefusedWithTheNeed) {
  if (world().size() == 1) GTEST_SKIP() << "a lone rank needs no shared memory";
  const Topology topology = topology_of(placements()[0]);
  const auto fabric = make_fabric("mpi", world(), topology, SumOrder::rank);
  try {
    fabric->allocate({std::int64_t{1} << 42, 2, 2});
    FAIL() << "16 TiB of slots cannot fit";
  } catch (const mpi::AgreedError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("TiB"), std::string::npos) << error.what();
  }
}

TEST(FabricRegistry, NamesWhatWouldTurnAMissingFabricOn) {
  const Topology topology = topology_of(placements()[0]);
  EXPECT_THROW(static_cast<void>(make_fabric("carrier-pigeon", world(), topology, SumOrder::rank)), UsageError);
  try {
    static_cast<void>(make_fabric("nccl", world(), topology, SumOrder::rank));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("-DLAMINA_CUDA=ON"), std::string::npos);
  }
}

}  // namespace
}  // namespace lamina
