#include <array>
#include <filesystem>
#include <set>

#include <lamina/base/error.hpp>
#include <lamina/mpi/communicator.hpp>

#include <gtest/gtest.h>

namespace lamina::mpi {
namespace {

Communicator world(double seconds = 60) { return Communicator::world(std::chrono::duration<double>(seconds)); }

TEST(Communicator, HostCollectives) {
  const Communicator comm = world();
  std::array<std::int64_t, 2> values{comm.rank(), 1};
  comm.sum(values, "a sum");
  EXPECT_EQ(values[0], comm.size() * (comm.size() - 1) / 2);
  EXPECT_EQ(values[1], comm.size());
  EXPECT_EQ(comm.max(comm.rank(), "a maximum"), comm.size() - 1);
  EXPECT_EQ(comm.min(comm.rank() + 5, "a minimum"), 5);
  const std::string mine(static_cast<std::size_t>(comm.rank()), 'x');  // rank 0 gives an empty text
  const auto texts = comm.all_gather(mine, "texts");
  for (int rank = 0; rank < comm.size(); ++rank)
    EXPECT_EQ(texts[static_cast<std::size_t>(rank)].size(), static_cast<std::size_t>(rank));
  EXPECT_EQ(comm.broadcast(comm.rank() == comm.size() - 1 ? "last" : "not", comm.size() - 1, "a text"), "last");
}

TEST(Communicator, SplitsKeepTheOrder) {
  const Communicator comm = world();
  const Communicator half = comm.split(comm.rank() % 2, comm.rank());
  EXPECT_EQ(half.rank(), comm.rank() / 2);
  EXPECT_EQ(comm.split_by_node().size(), comm.size());
}

TEST(Communicator, MessagesArrive) {
  const Communicator comm = world();
  const int next = (comm.rank() + 1) % comm.size(), last = (comm.rank() + comm.size() - 1) % comm.size();
  std::vector<float> out(100000, static_cast<float>(comm.rank())), in(out.size(), -1.0F);
  std::array<Request, 2> requests{comm.receive(in, last, 5), comm.send(out, next, 5)};
  comm.wait_all(requests, "a ring");
  EXPECT_EQ(in.back(), static_cast<float>(last));
}

TEST(Communicator, AgreeThrowsTheSameOnEveryRank) {
  const Communicator comm = world();
  EXPECT_NO_THROW(comm.agree([] {}, "nothing"));
  const int failing = comm.size() - 1;
  try {
    comm.agree(
        [&] {
          if (comm.rank() == failing) throw DataError("the file is broken");
        },
        "a load");
    FAIL() << "agree must throw on every rank";
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_NE(std::string(error.what()).find("the file is broken"), std::string::npos);
    EXPECT_EQ(std::string(error.what()).find("rank") == 0, comm.size() > 1);
  }
}

TEST(Communicator, AWaitEndsAtItsDeadline) {
  const Communicator comm = world(0.2);
  std::array<float, 1> late{}, value{7.0F};
  Request request = comm.receive(late, comm.rank(), 9);
  try {
    comm.wait(request, "a message that comes too late");
    FAIL() << "the wait must end at its deadline";
  } catch (const PeerError& error) {
    EXPECT_NE(std::string(error.what()).find("a message that comes too late"), std::string::npos);
  }
  Request sent = comm.send(value, comm.rank(), 9);  // completes both, so that nothing is left behind
  comm.wait(sent, "the message");
  comm.wait(request, "the message");
  EXPECT_EQ(late, value);
}

TEST(SharedMemory, EveryRankSeesEveryPart) {
  const Communicator comm = world();
  const Communicator node = comm.split_by_node();
  const SharedMemory memory(node, node.rank() == 1 ? 0 : 5000);
  for (int rank = 0; rank < node.size(); ++rank) {
    if (rank == 1) {
      EXPECT_EQ(memory.bytes(rank), 0u);
      continue;
    }
    EXPECT_GE(memory.bytes(rank), 5000u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.part(rank)) % 4096, 0u);
  }
  if (node.rank() != 1) memory.part(node.rank())[4999] = static_cast<std::byte>(node.rank() + 1);
  comm.barrier("writes");
  for (int rank = 0; rank < node.size(); ++rank) {
    if (rank == 1) continue;
    EXPECT_EQ(memory.part(rank)[4999], static_cast<std::byte>(rank + 1));
  }
  comm.barrier("reads");
}

// A job that is killed must not leave its slots' memory behind on the node.
TEST(SharedMemory, HasNoNameThatWouldOutliveTheProcesses) {
  const Communicator comm = world();
  const auto named_files = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      // This job's windows: other tests may make their own at the same time, but not of this size.
      std::error_code gone;
      const auto size = entry.file_size(gone);
      if (!gone && size > 12'345'678 && size < 12'345'678 + 5 * 12'345'678 / 100) names.insert(entry.path());
    }
    return names;
  };
  {
    const Communicator node = comm.split_by_node();
    const SharedMemory memory(node, node.rank() == 0 ? 12'345'678 : 0);
    memory.part(0)[12'000'000] = std::byte{1};
    comm.barrier("the memory");
    EXPECT_TRUE(named_files().empty());
    comm.barrier("the look");
  }
  comm.barrier("the end of the memory");
  EXPECT_TRUE(named_files().empty());
}

}  // namespace
}  // namespace lamina::mpi
