// One run at a time in a run folder; who is known to be gone does not count.
#include "checkpoint/sample_checkpoint.hpp"
#include "support/temporary_folder.hpp"

#include <lamina/base/file.hpp>
#include <lamina/checkpoint/run_lock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lamina {
namespace {

using test::message_of;
using testing::AllOf;
using testing::HasSubstr;

std::optional<bool> nobody_can_tell(const std::string&, const std::string&) { return std::nullopt; }

class RunLockTest : public testing::Test {
 protected:
  // Leaves a lock as a holder that was killed does: with these changes to this process.
  void leave_lock(const std::function<void(LockHolder&)>& change) {
    LockHolder holder = this_process();
    change(holder);
    if (::fork() == 0) {
      new RunLock(folder_.path(), holder, nobody_can_tell);  // never released
      ::_exit(0);
    }
    int status = 0;
    ::wait(&status);
    ASSERT_EQ(status, 0);
  }
  [[nodiscard]] std::string take(
      const JobHasEnded& job_has_ended = nobody_can_tell,
      const std::function<void(LockHolder&)>& change = [](LockHolder&) {}) const {
    LockHolder self = this_process();
    change(self);
    return message_of<UsageError>([&] { const RunLock lock(folder_.path(), self, job_has_ended); });
  }

  test::TemporaryFolder folder_;
};

TEST_F(RunLockTest, HoldsUntilReleasedAndNamesItsHolder) {
  {
    const LockHolder self = this_process();
    const RunLock lock(folder_.path(), self, nobody_can_tell);
    EXPECT_THAT(take(), AllOf(HasSubstr("another run writes to"), HasSubstr(self.host), HasSubstr(self.started),
                              HasSubstr("process " + std::to_string(::getpid())), HasSubstr("run.lock")));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / RunLock::file_name));
  EXPECT_EQ(take(), "no exception");
}

TEST_F(RunLockTest, OneOfManyGetsIt) {
  int winners = 0;
  for (int i = 0; i < 8; ++i) {
    if (::fork() != 0) continue;
    try {
      new RunLock(folder_.path(), this_process(), nobody_can_tell);
      ::usleep(1'500'000);  // longer than the others try
      ::_exit(0);
    } catch (const UsageError&) {
      ::_exit(1);
    }
  }
  for (int i = 0; i < 8; ++i) {
    int status = 0;
    ::wait(&status);
    winners += status == 0 ? 1 : 0;
  }
  EXPECT_EQ(winners, 1);
}

TEST_F(RunLockTest, OfADeadProcessIsTakenOver) {
  leave_lock([](LockHolder& holder) { holder.start_ticks = 1; });  // the pid came again
  EXPECT_EQ(take(), "no exception");
  leave_lock([](LockHolder& holder) { holder.pid = 4'194'304; });  // beyond the largest pid
  EXPECT_EQ(take(), "no exception");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run.lock"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run.lock.takeover"));
}

TEST_F(RunLockTest, OfAnEarlierBootIsTakenOverOnlyOnTheSameMachine) {
  leave_lock([](LockHolder& holder) { holder.boot = "another"; });
  const auto on = [](const std::string& host) { return [host](LockHolder& self) { self.host = host; }; };
  EXPECT_THAT(take(nobody_can_tell, on("elsewhere")), HasSubstr("another run writes to"));
  EXPECT_EQ(take(), "no exception");
  // Every second container is called localhost.
  leave_lock([](LockHolder& holder) {
    holder.boot = "another";
    holder.host = "localhost";
  });
  EXPECT_THAT(take(nobody_can_tell, on("localhost")), HasSubstr("another run writes to"));
}

TEST_F(RunLockTest, OfAnotherMachineOrContainerHoldsUnlessItsJobHasEnded) {
  const auto elsewhere = [](LockHolder& holder) {
    holder.host = "elsewhere";
    holder.boot = "another";
    holder.job = "17";
  };
  const auto says = [](bool ended) { return [ended](const std::string&, const std::string&) { return ended; }; };
  leave_lock(elsewhere);
  EXPECT_THAT(take(), AllOf(HasSubstr("elsewhere"), HasSubstr("job 17"), HasSubstr("run.lock")));
  EXPECT_THAT(take(says(false)), HasSubstr("another run writes to"));
  EXPECT_EQ(take(says(true)), "no exception");
  leave_lock(elsewhere);
  EXPECT_THAT(take(nobody_can_tell, [](LockHolder& self) { self.job = "17"; }), HasSubstr("another run writes to"));
  EXPECT_EQ(take(nobody_can_tell,
                 [](LockHolder& self) {
                   self.job = "17";
                   self.job_restarts = 1;  // requeued: the same number
                 }),
            "no exception");
  leave_lock([](LockHolder& holder) {
    holder.pid_space = "pid:[1]";
    holder.pid = 4'194'304;
  });
  EXPECT_THAT(take(), HasSubstr("another run writes to")) << "pids of another container say nothing";
}

TEST_F(RunLockTest, ThatCannotBeReadIsNotTakenOver) {
  write_file_atomically(folder_ / RunLock::file_name, "", ExitCode::usage);
  EXPECT_THAT(take(), HasSubstr("cannot be read"));
}

TEST_F(RunLockTest, OnlyItsOwnerReleasesIt) {
  {
    const RunLock lock(folder_.path(), this_process(), nobody_can_tell);
    std::filesystem::remove(folder_ / RunLock::file_name);  // by somebody who took it for dead
    leave_lock([](LockHolder&) {});
  }
  EXPECT_TRUE(std::filesystem::exists(folder_ / RunLock::file_name));
}

}  // namespace
}  // namespace lamina
