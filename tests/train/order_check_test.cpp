#include <chrono>

#include <lamina/train/order_check.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

std::string unit_name(std::size_t unit) { return "layers." + std::to_string(unit); }

TEST(OrderCheck, EqualOrdersPassAndASwapIsNamed) {
  const mpi::Communicator world = mpi::Communicator::world(std::chrono::seconds(60));
  CollectiveOrder order;
  order.note(CollectiveKind::gather, 0);
  order.note(CollectiveKind::gather, 1);
  order.note(CollectiveKind::reduce, 1);
  EXPECT_NO_THROW(check_collective_order(world, order, unit_name));
  if (world.size() == 1) return;
  const int strange = world.size() - 1;
  CollectiveOrder swapped = order;
  if (world.rank() == strange) {
    swapped.clear();
    swapped.note(CollectiveKind::gather, 1);
    swapped.note(CollectiveKind::gather, 0);
    swapped.note(CollectiveKind::reduce, 1);
  }
  try {
    check_collective_order(world, swapped, unit_name);
    FAIL() << "a swapped order must be found on every rank";
  } catch (const mpi::AgreedError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("operation 1"), std::string::npos) << text;
    EXPECT_NE(text.find("'gather layers.0' on rank 0"), std::string::npos) << text;
    EXPECT_NE(text.find("'gather layers.1' on rank " + std::to_string(strange)), std::string::npos) << text;
  }
}

TEST(OrderCheck, AMissingOperationIsNamed) {
  const mpi::Communicator world = mpi::Communicator::world(std::chrono::seconds(60));
  if (world.size() == 1) GTEST_SKIP() << "one rank has nobody to differ from";
  CollectiveOrder order;
  order.note(CollectiveKind::gather, 0);
  if (world.rank() == 0) order.note(CollectiveKind::publish, 0);
  try {
    check_collective_order(world, order, unit_name);
    FAIL();
  } catch (const mpi::AgreedError& error) {
    EXPECT_NE(std::string(error.what()).find("'nothing more' on rank 1"), std::string::npos) << error.what();
  }
}

TEST(CollectiveOrder, TextKeepsEverything) {
  CollectiveOrder order;
  for (std::size_t unit = 0; unit < 100; ++unit)
    order.note(unit % 2 == 0 ? CollectiveKind::gather : CollectiveKind::publish, unit);
  EXPECT_EQ(CollectiveOrder::from_text(order.to_text()).entries(), order.entries());
  EXPECT_EQ(CollectiveOrder::from_text(order.to_text()).hash(), order.hash());
}

// Gathers and reductions run on two threads: only the order within each is the ranks' business.
TEST(CollectiveOrder, GathersAndReductionsHaveOrdersOfTheirOwn) {
  CollectiveOrder first, second, other;
  first.note(CollectiveKind::gather, 0);
  first.note(CollectiveKind::reduce, 1);
  first.note(CollectiveKind::reduce, 2);
  second.note(CollectiveKind::reduce, 1);
  second.note(CollectiveKind::gather, 0);
  second.note(CollectiveKind::reduce, 2);
  other.note(CollectiveKind::gather, 0);
  other.note(CollectiveKind::reduce, 2);
  other.note(CollectiveKind::reduce, 1);
  EXPECT_EQ(first.hash(), second.hash());
  EXPECT_NE(first.hash(), other.hash());
}

}  // namespace
}  // namespace lamina
