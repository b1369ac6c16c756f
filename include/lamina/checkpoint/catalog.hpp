// Which checkpoints a run folder holds, which of them are complete, and why the others are not.
//
// Complete means: the manifest parses and every file it lists is there with its size. Checksums are proved when loading
// (ShardReader).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lamina {

struct CatalogEntry {
  std::filesystem::path folder;
  std::int64_t step = 0;
  std::uint64_t sequence = 0;  // 0 when the manifest cannot be read
  bool complete = false;
  std::string reason;  // why not complete; empty when it is
};

// Every step_N folder of `run_folder`, newest first (by sequence, then step); incomplete ones after the complete ones.
// A complete step_N.replaced-ID whose step_N is missing counts too: a save died between two renames. Temporary
// folders are not listed. A run folder that does not exist holds none.
[[nodiscard]] std::vector<CatalogEntry> list_checkpoints(const std::filesystem::path& run_folder);

// The newest complete checkpoint of a run folder, if there is any. `skipped`, if given, receives one line for each
// newer or unreadable folder that was passed over.
[[nodiscard]] std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& run_folder,
                                                                     std::vector<std::string>* skipped = nullptr);

// The checkpoint a user means by `path`: a checkpoint folder itself (which must be complete), or a run folder, whose
// newest complete checkpoint is taken. Throws CheckpointError with the reasons when there is none.
[[nodiscard]] std::filesystem::path resolve_checkpoint(const std::filesystem::path& path);

// Removes what no run needs: temporary folders, replaced versions of a step that is there again, and all but the newest
// `keep` complete checkpoints (0 = keep all; `protect` is never removed). A replaced version whose step is missing gets
// its name back. Incomplete step_N folders are left for a person to look at. Throws CheckpointError.
void prune_checkpoints(const std::filesystem::path& run_folder, std::int64_t keep,
                       const std::filesystem::path& protect);

// The first of those steps alone: what attempts that died have left behind. Call before a new attempt, so that their
// space is free.
void clean_leftovers(const std::filesystem::path& run_folder);

}  // namespace lamina
