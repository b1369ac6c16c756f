// One run at a time in a run folder: RUN/run.lock names who writes there. Readers do not look at it.
//
// Made by link(2), which is atomic on local and shared file systems alike; where links are not supported, by
// O_CREAT|O_EXCL. A lock whose owner is known to be gone (a dead process of this machine, an earlier boot of it, an
// ended batch job) is taken over. Nobody can tell whether a process of another machine lives: such a lock holds until
// it is removed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace lamina {

// Who holds a lock.
struct LockHolder {
  std::string host;
  std::string boot;       // of the machine since it was started; empty: not known
  std::string pid_space;  // in which pid means something (containers have their own)
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  // when the process began, in ticks since boot: pids come again
  std::string started;            // the same for people, UTC
  std::string job, job_step;      // of the batch system; empty: none
  std::int64_t job_restarts = 0;  // a requeued job keeps its number
  std::string token;              // of this lock alone

  bool operator==(const LockHolder&) const = default;
};

// This process, outside any job.
[[nodiscard]] LockHolder this_process();

// Whether a batch job (and step of it, if given) has ended; nullopt when nobody can tell.
using JobHasEnded = std::function<std::optional<bool>(const std::string& job, const std::string& step)>;

// Why `holder` is gone, seen by `self`: "process 17 has ended", ... Empty when it lives or nobody can tell.
[[nodiscard]] std::string why_gone(const LockHolder& holder, const LockHolder& self, const JobHasEnded& job_has_ended);

class RunLock {
 public:
  // Takes the lock of a folder that exists, and warns when it takes over a stale one. Throws UsageError that names the
  // holder when it is held, or the reason when the file system refuses.
  RunLock(const std::filesystem::path& run_folder, LockHolder self, const JobHasEnded& job_has_ended);
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  // Releases it, unless somebody else has it by now.
  ~RunLock();

  static constexpr const char* file_name = "run.lock";

 private:
  [[nodiscard]] bool try_take();
  void take_over(const LockHolder& stale);

  std::filesystem::path path_;
  LockHolder self_;
};

}  // namespace lamina
