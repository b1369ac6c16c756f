// What a run begins with: a checkpoint of its folder, one that is named, or fresh weights.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <lamina/checkpoint/catalog.hpp>
#include <lamina/config/run_config.hpp>

namespace lamina {

struct StartChoice {
  std::vector<std::filesystem::path> candidates;  // newest first, to be proved; empty: a fresh start
  std::vector<CatalogEntry> to_set_aside;         // once the start has succeeded: what the run must not stumble over
};

// What to do with a run folder that has no usable checkpoint.
inline constexpr const char* how_to_begin_anew =
    "put one back; or, to begin anew, choose another run.dir or set run.resume = never and run.overwrite = yes, which "
    "moves them aside";

// Looks at files only; one rank does it for all. Throws CheckpointError when there are checkpoints and none can be
// used, or nobody can tell; UsageError for `never` in a folder that has some, without run.overwrite.
[[nodiscard]] StartChoice choose_start(const RunSection& run);

// Moves aside what `choice` and the proving of its candidates (`damaged`) say, each with a line.
void clear_the_way(const StartChoice& choice, const std::vector<CatalogEntry>& damaged,
                   const std::filesystem::path& run_folder);

}  // namespace lamina
