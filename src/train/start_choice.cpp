#include <lamina/base/error.hpp>
#include <lamina/checkpoint/upkeep.hpp>
#include <lamina/train/start_choice.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

namespace fs = std::filesystem;

StartChoice begin_anew(const fs::path& folder, bool overwrite) {
  StartChoice choice;
  choice.to_set_aside = list_checkpoints(folder);
  if (choice.to_set_aside.empty()) return choice;
  if (!overwrite) {
    throw UsageError(one_line(fmt::format("{} already holds checkpoints and run.resume is never", folder.string()),
                              "a fresh start would overwrite them",
                              "choose another run.dir, run.resume = auto, or run.overwrite = yes, which moves them "
                              "aside"));
  }
  for (CatalogEntry& entry : choice.to_set_aside) entry.reason = "run.overwrite is yes and the run begins anew";
  std::error_code ignored;
  for (const char* name : {"metrics.jsonl", "latest"}) {  // they tell of the checkpoints
    if (!fs::exists(folder / name, ignored)) continue;
    CatalogEntry entry;
    entry.folder = folder / name;
    entry.reason = choice.to_set_aside.front().reason;
    choice.to_set_aside.push_back(std::move(entry));
  }
  return choice;
}

StartChoice take(CheckpointCandidates candidates) {
  StartChoice choice;
  for (const CatalogEntry& entry : candidates.complete) choice.candidates.push_back(entry.folder);
  choice.to_set_aside = std::move(candidates.others);
  return choice;
}

}  // namespace

StartChoice choose_start(const RunSection& run) {
  if (run.resume == "never") return begin_anew(run.dir, run.overwrite);
  if (run.resume != "auto") return take(checkpoint_candidates(run.resume));
  CheckpointCandidates candidates = candidates_in(run.dir);
  if (candidates.complete.empty() && !candidates.others.empty())
    throw_none_usable(run.dir, candidates.others, how_to_begin_anew);
  return take(std::move(candidates));
}

void clear_the_way(const StartChoice& choice, const std::vector<CatalogEntry>& damaged, const fs::path& run_folder) {
  // A checkpoint that was named may lie in another run's folder: nothing is moved there.
  const auto clear = [&](const CatalogEntry& entry) {
    std::error_code error;
    if (fs::equivalent(entry.folder.parent_path(), run_folder, error)) set_aside(entry.folder, entry.reason);
  };
  for (const CatalogEntry& entry : choice.to_set_aside) clear(entry);
  for (const CatalogEntry& entry : damaged) clear(entry);
}

}  // namespace lamina
