// Keeping a run folder tidy without losing what is not the run's own.
//
// A run owns the checkpoints whose manifest carries its id, and the half-written folders that are marked with it. Those
// may be removed. Whatever else is in the way is moved to RUN/aside/, with a line that names it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lamina {

// Moves a file or folder of a run folder to RUN/aside/NAME.ID and says so in a warning. Returns where it is now.
// Throws CheckpointError.
std::filesystem::path set_aside(const std::filesystem::path& path, const std::string& why);

// What attempts that died have left behind. Half-written folders and replaced versions of the run `run_id` are removed,
// those of others set aside; a replaced version whose step is missing gets its name back. Call before a new attempt, so
// that the space is free. Throws CheckpointError.
void clean_leftovers(const std::filesystem::path& run_folder, const std::string& run_id);

// The same, and removes all but the newest `keep` complete checkpoints of that run (0 = keep all; `protect` is never
// removed). Checkpoints of other runs are neither counted nor touched. Throws CheckpointError.
void prune_checkpoints(const std::filesystem::path& run_folder, const std::string& run_id, std::int64_t keep,
                       const std::filesystem::path& protect);

}  // namespace lamina
