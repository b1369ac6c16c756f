// Which checkpoints a run folder holds, which of them are complete, and why the others are not.
//
// Complete means: the manifest parses, is of the step its folder is named after, and every file it lists is there with
// its size. Checksums are proved when loading (ShardReader, checkpoint/proof.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lamina {

struct CatalogEntry {
  std::filesystem::path folder;
  std::int64_t step = 0;
  std::uint64_t sequence = 0;  // 0 when the manifest cannot be read
  std::string run_id;          // Manifest::run_id
  bool complete = false;
  bool unreadable = false;  // the file system refuses to tell: it may well be complete
  std::string reason;       // why not complete; empty when it is
};

// What is known of one folder.
[[nodiscard]] CatalogEntry examine_checkpoint(const std::filesystem::path& folder);

// Everything named step_N in `run_folder`, newest first (by sequence, then step); incomplete ones after the complete
// ones. A complete step_N.replaced-ID whose step_N is missing counts too: a save died between two renames. Temporary
// folders are not listed. A run folder that does not exist holds none.
[[nodiscard]] std::vector<CatalogEntry> list_checkpoints(const std::filesystem::path& run_folder);

// What `path` may mean: checkpoints to be proved, the first to be preferred, and what cannot be one.
struct CheckpointCandidates {
  std::vector<CatalogEntry> complete;  // newest first
  std::vector<CatalogEntry> others;    // incomplete, or not a checkpoint at all
  bool named = false;                  // a user named this one: no other will do
};

// Of a run folder. Throws CheckpointError when one of its folders cannot be read: it may be the newest.
[[nodiscard]] CheckpointCandidates candidates_in(const std::filesystem::path& run_folder);

// Of what a user names: a checkpoint (which must be complete), RUN/latest, or a run folder with at least one complete
// checkpoint. Throws CheckpointError with the reasons otherwise.
[[nodiscard]] CheckpointCandidates checkpoint_candidates(const std::filesystem::path& path);

// The error of a run folder that has none left, with the reasons. `advice`: what to do.
[[noreturn]] void throw_none_usable(const std::filesystem::path& run_folder, const std::vector<CatalogEntry>& others,
                                    const std::string& advice);

}  // namespace lamina
