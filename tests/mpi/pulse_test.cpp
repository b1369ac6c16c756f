// Slow is not dead: waits last as long as somebody gets on or is busy with files, and no longer.
#include <array>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/mpi/pulse.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina::mpi {
namespace {

using Seconds = std::chrono::duration<double>;
using testing::HasSubstr;

void sleep(double seconds) { std::this_thread::sleep_for(Seconds(seconds)); }

constexpr double deadline = 0.5;

// The last rank does `late` while the others wait for a message of it. Returns why they gave up, if they did.
template <typename Late>
std::string while_others_wait(double local_deadline, const Late& late) {
  const Communicator comm = Communicator::world(Seconds(deadline));
  Pulse pulse(comm, Seconds(local_deadline));
  const int last = comm.size() - 1;
  std::string gave_up;
  std::array<float, 1> value{7};
  if (comm.rank() == last) {
    late(comm);
    for (int rank = 0; rank < last; ++rank) {
      Request sent = comm.send(value, rank, 3);
      comm.wait(sent, "the sending");
    }
  } else {
    Request request = comm.receive(value, last, 3);
    try {
      comm.wait(request, "a message");
    } catch (const PeerError& error) {
      gave_up = error.what();
      while (!request.test()) sleep(0.01);
    }
  }
  pulse.leave();
  return gave_up;
}

bool waits(int rank, int size) { return rank < size - 1; }

TEST(Pulse, SlowLocalWorkIsWaitedFor) {
  const std::string gave_up = while_others_wait(60, [](const Communicator& comm) {
    const Patience::LocalWork slow(comm.patience());
    sleep(6 * deadline);
  });
  EXPECT_EQ(gave_up, "");
}

TEST(Pulse, SlowLocalWorkInAgreeIsWaitedFor) {
  const Communicator comm = Communicator::world(Seconds(deadline));
  Pulse pulse(comm, Seconds(60));
  EXPECT_NO_THROW(comm.agree(
      [&] {
        if (comm.rank() == 0) sleep(6 * deadline);
      },
      "a slow file"));
  pulse.leave();
}

TEST(Pulse, ARankThatGetsOnIsWaitedFor) {
  const std::string gave_up = while_others_wait(60, [](const Communicator& comm) {
    for (int operation = 0; operation < 10; ++operation) {
      sleep(0.6 * deadline);
      comm.patience().progress();
    }
  });
  EXPECT_EQ(gave_up, "");
}

TEST(Pulse, ARankThatDoesNotGetOnIsNot) {
  const auto begin = Patience::Clock::now();
  const std::string gave_up = while_others_wait(60, [](const Communicator&) { sleep(6 * deadline); });
  const Communicator comm = Communicator::world(Seconds(60));
  if (!waits(comm.rank(), comm.size())) return;
  EXPECT_THAT(gave_up, HasSubstr("a message"));
  EXPECT_THAT(gave_up, HasSubstr("none has got on"));
  EXPECT_GE(Seconds(Patience::Clock::now() - begin).count(), deadline);
}

TEST(Pulse, LocalWorkHasADeadlineToo) {
  const std::string gave_up = while_others_wait(deadline, [](const Communicator& comm) {
    const Patience::LocalWork endless(comm.patience());
    sleep(6 * deadline);
  });
  const Communicator comm = Communicator::world(Seconds(60));
  if (!waits(comm.rank(), comm.size())) return;
  EXPECT_THAT(gave_up, HasSubstr("rank " + std::to_string(comm.size() - 1) + " is busy with files"));
}

TEST(Pulse, AWaitInsideLocalWorkIsNoWork) {
  const std::string gave_up = while_others_wait(60, [](const Communicator& comm) {
    const Patience::LocalWork outer(comm.patience());
    const Patience::Waiting inner(comm.patience());
    sleep(6 * deadline);
  });
  const Communicator comm = Communicator::world(Seconds(60));
  if (!waits(comm.rank(), comm.size())) return;
  EXPECT_THAT(gave_up, HasSubstr("none has got on"));
}

TEST(Pulse, ARankWithoutSignsIsNotWaitedFor) {
  const Communicator comm = Communicator::world(Seconds(deadline));
  const int last = comm.size() - 1;
  std::array<float, 1> value{7};
  std::optional<Pulse> pulse(std::in_place, comm, Seconds(60));
  if (comm.rank() == last) {
    pulse.reset();  // as if the process were stopped
    sleep(6 * deadline);
    for (int rank = 0; rank < last; ++rank) {
      Request sent = comm.send(value, rank, 3);
      comm.wait(sent, "the sending");
    }
    return;
  }
  Request request = comm.receive(value, last, 3);
  try {
    comm.wait(request, "a message");
    FAIL() << "must give up";
  } catch (const PeerError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no sign of life"));
  }
  while (!request.test()) sleep(0.01);
  EXPECT_THROW(pulse->leave(), PeerError);
}

}  // namespace
}  // namespace lamina::mpi
