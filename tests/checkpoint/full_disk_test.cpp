// A disk that fills while saving: reported, nothing lost, and the same process can save again once there is space.
#include "checkpoint/sample_checkpoint.hpp"
#include "support/temporary_folder.hpp"

#include <fstream>
#include <functional>

#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/shard_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lamina {
namespace {

namespace fs = std::filesystem;
using test::newest_checkpoint;
using test::resolve_checkpoint;
using test::save_sample;

constexpr int not_permitted = 77;

int run_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) std::exit(work());  // exit, not _exit: HDF5 must survive that too
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Whether a save is refused with one line and code 66.
bool is_refused(const std::function<void()>& save) {
  try {
    save();
  } catch (const Error& error) {
    return error.code() == ExitCode::checkpoint && std::string_view(error.what()).find('\n') == std::string_view::npos;
  }
  return false;
}

// Lets files grow to `bytes` only.
void limit_file_size(rlim_t bytes) {
  const rlimit limit{bytes, RLIM_INFINITY};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

class FullDisk : public testing::Test {
 protected:
  test::TemporaryFolder folder_;
  fs::path run_ = folder_ / "run";
};

TEST_F(FullDisk, TheSameProcessSavesAgainOnceThereIsSpace) {
  const int status = run_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    save_sample(run_, 100, 1);
    const std::uint64_t whole = fs::file_size(run_ / "step_00000100" / "rank_00000.h5");
    for (std::uint64_t limit = 0; limit < whole; limit += 211) {
      limit_file_size(limit);
      if (!is_refused([&] { save_sample(run_, 200, 1); })) return 1;
      limit_file_size(RLIM_INFINITY);
      if (newest_checkpoint(run_) != run_ / "step_00000100") return 2;
    }
    save_sample(run_, 300, 1);
    ShardReader(resolve_checkpoint(run_)).verify_all();
    return newest_checkpoint(run_) == run_ / "step_00000300" ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
}

// A file system of its own, of `size`, at `where`: seen by this process only.
bool mount_small_disk(const fs::path& where, const std::string& size) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return ::mount("none", where.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
}

TEST_F(FullDisk, ARealOneIsReportedAndLeavesThePreviousOne) {
  fs::create_directories(run_);
  const int status = run_child([&] {
    if (!mount_small_disk(run_, "256k")) return not_permitted;
    save_sample(run_, 100, 1);
    std::ofstream filler(run_ / "filler", std::ios::binary);
    int refused = 0;
    // Fill page by page; each time saving must either work or be refused, and a complete checkpoint must be there.
    for (int page = 0; page < 64; ++page) {
      filler << std::string(4096, 'x') << std::flush;
      refused += is_refused([&] { save_sample(run_, 200 + page, 1, 1); }) ? 1 : 0;
      const auto newest = newest_checkpoint(run_);
      if (!newest) return 2;
      ShardReader(*newest).verify_all();
    }
    return refused > 0 ? 0 : 3;
  });
  if (status == not_permitted) GTEST_SKIP() << "mounting a small file system is not permitted here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lamina
