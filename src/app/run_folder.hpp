// The folder of a run: made, proved writable, and given its config and log, by rank 0.
#pragma once

#include <filesystem>

#include <lamina/config/run_config.hpp>

namespace lamina {

// Makes the folder and writes FOLDER/config.ini (the resolved config). Throws UsageError when that cannot be done.
void prepare_run_folder(const RunConfig& config);

}  // namespace lamina
