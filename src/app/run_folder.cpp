#include "run_folder.hpp"

#include <system_error>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/log.hpp>
#include <lamina/config/command_line.hpp>

#include <fmt/format.h>

namespace lamina {

void prepare_run_folder(const RunConfig& config) {
  const std::filesystem::path folder = config.run.dir;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed || !std::filesystem::is_directory(folder)) {
    throw UsageError(one_line(fmt::format("cannot make the run folder {}", folder.string()),
                              failed ? failed.message() : "a file is in its place", "choose a writable run.dir"));
  }
  write_file_atomically(folder / "config.ini", to_ini(config), ExitCode::usage);
  add_log_file(folder / "log.txt");
}

}  // namespace lamina
