// The folder of a run, for rank 0: made, proved writable, locked against a second run.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <lamina/checkpoint/run_lock.hpp>
#include <lamina/config/run_config.hpp>
#include <lamina/mpi/environment.hpp>

namespace lamina {

class RunFolder {
 public:
  // Makes the folder and takes its lock. `environment` says which batch job this is. Throws UsageError when that cannot
  // be done.
  RunFolder(std::filesystem::path folder, const mpi::Lookup& environment);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  // Releases the lock. A start that failed leaves nothing: folders that it made are removed.
  ~RunFolder();

  // Writes FOLDER/config.ini (the resolved config) and opens FOLDER/log.txt. Throws UsageError.
  void begin_writing(const RunConfig& config);

 private:
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> made_;  // deepest first
  std::optional<RunLock> lock_;
};

}  // namespace lamina
