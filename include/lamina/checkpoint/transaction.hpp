// Saving a checkpoint so that whatever dies whenever, only complete checkpoints look complete.
//
// Every rank makes the same CheckpointTransaction (rank 0 chooses the id and shares it). Then, with agreement between
// ranks (the caller's business) after each line:
//   rank 0       begin()                       creates RUN/step_00000100.tmp-ID
//   every rank   write_shard_file(folder(), rank, units, slices)      -> ShardFileRecord, gathered on rank 0
//   rank 0       commit(manifest, side files, keep)    if all ranks succeeded
//   rank 0       abandon()                     if any failed
// A failure at any point leaves the previous checkpoints untouched and chosen.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <lamina/checkpoint/manifest.hpp>
#include <lamina/checkpoint/side_files.hpp>

namespace lamina {

// "step_00000100"
[[nodiscard]] std::string checkpoint_name(std::int64_t step);

class CheckpointTransaction {
 public:
  // A short id that no earlier attempt and no other run used: time, process and a random part.
  [[nodiscard]] static std::string make_id();

  // `run_id` is the same for all saves of a run (Manifest::run_id), `id` is this attempt's.
  CheckpointTransaction(std::filesystem::path run_folder, std::int64_t step, std::string run_id, const std::string& id);

  // The temporary folder every rank writes its shard file to.
  [[nodiscard]] const std::filesystem::path& folder() const { return temporary_; }
  [[nodiscard]] const std::filesystem::path& final_folder() const { return final_; }

  // Creates the run folder if need be and the temporary folder. Throws CheckpointError.
  void begin();
  // Completes `manifest` (step, sequence, run id, side files), checks that every listed shard file is there with its
  // size, writes model/ and the manifest, fsyncs, renames to step_N, fsyncs the run folder, updates RUN/latest, removes
  // this run's stale temporary folders and all but its newest `keep` complete checkpoints (0 = keep all). An older
  // step_N of this run is replaced, and stays findable until the new one is in place; anything else of that name is set
  // aside (upkeep.hpp). Returns the final folder. Throws CheckpointError until the last rename; what fails after it
  // (fsync of the run folder, latest, pruning) is only logged as a warning, because the checkpoint is complete.
  std::filesystem::path commit(Manifest manifest, std::span<const SideFile> side_files, std::int64_t keep);
  // Removes the temporary folder as far as possible. Never throws.
  void abandon() noexcept;

 private:
  void write_side_files(Manifest& manifest, std::span<const SideFile> side_files) const;
  void make_way() const;
  [[nodiscard]] bool put_in_place() const;
  void tidy_up(std::int64_t keep) const;

  std::filesystem::path run_;
  std::int64_t step_;
  std::string run_id_, mark_;
  std::filesystem::path temporary_;
  std::filesystem::path final_;
};

}  // namespace lamina
