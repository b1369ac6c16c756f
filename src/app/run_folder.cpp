#include "run_folder.hpp"

#include "batch_job.hpp"

#include <system_error>
#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/log.hpp>
#include <lamina/config/command_line.hpp>

#include <fmt/format.h>

namespace lamina {

namespace fs = std::filesystem;

RunFolder::RunFolder(fs::path folder, const mpi::Lookup& environment) : folder_(std::move(folder)) {
  std::error_code failed, ignored;
  for (fs::path part = folder_; !part.empty() && !fs::exists(part, ignored); part = part.parent_path())
    made_.push_back(part);
  fs::create_directories(folder_, failed);
  if (failed || !fs::is_directory(folder_, ignored)) {
    throw UsageError(one_line(fmt::format("cannot make the run folder {}", folder_.string()),
                              failed ? failed.message() : "a file is in its place", "choose a writable run.dir"));
  }
  LockHolder self = this_process();
  name_batch_job(self, environment);
  lock_.emplace(folder_, std::move(self), batch_job_has_ended);
}

RunFolder::~RunFolder() {
  lock_.reset();
  std::error_code ignored;
  for (const fs::path& folder : made_) fs::remove(folder, ignored);  // of folders, empty ones only
}

void RunFolder::begin_writing(const RunConfig& config) {
  made_.clear();
  write_file_atomically(folder_ / "config.ini", to_ini(config), ExitCode::usage);
  add_log_file(folder_ / "log.txt");
}

}  // namespace lamina
