#include "staging.hpp"
#include "step_folders.hpp"

#include <lamina/base/log.hpp>
#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/transaction.hpp>
#include <lamina/checkpoint/upkeep.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

namespace fs = std::filesystem;

// A folder loses its name first, so that a removal that dies half-way leaves nothing that looks like a checkpoint.
void remove_checkpoint(const fs::path& folder, const std::string& run_id) {
  const fs::path doomed =
      fmt::format("{}{}{}.{}", folder.string(), temporary_mark, run_id, CheckpointTransaction::make_id());
  fs::rename(folder, doomed);
  fs::remove_all(doomed);
}

void clean(const StepFolder& found, const std::vector<StepFolder>& all, const std::string& run_id) {
  const fs::path base = found.path.parent_path() / found.name.base;
  if (found.name.temporary()) {
    if (!found.name.marked_by(run_id)) {
      set_aside(found.path, "it was half-written when another run or start ended");
    } else {
      fs::remove_all(found.path);
    }
  } else if (found.name.replaced() && !holds_step(all, found.name.base)) {
    fs::rename(found.path, base);
  } else if (found.name.replaced() && examine_checkpoint(base).complete) {
    if (found.name.marked_by(run_id)) {
      remove_checkpoint(found.path, run_id);
    } else {
      set_aside(found.path, "another run replaced it");
    }
  }
}

}  // namespace

fs::path set_aside(const fs::path& path, const std::string& why) {
  fs::path target;
  with_checkpoint_errors(path, [&] {
    const fs::path folder = path.parent_path() / "aside";
    fs::create_directories(folder);
    target = folder / fmt::format("{}.{}", path.filename().string(), CheckpointTransaction::make_id());
    fs::rename(path, target);
  });
  log_warn(fmt::format("moved {} to {}: {}; remove it when nobody needs it", path.string(), target.string(), why));
  return target;
}

void clean_leftovers(const fs::path& run_folder, const std::string& run_id) {
  with_checkpoint_errors(run_folder, [&] {
    const std::vector<StepFolder> folders = find_step_folders(run_folder);
    for (const StepFolder& found : folders) clean(found, folders, run_id);
  });
}

void prune_checkpoints(const fs::path& run_folder, const std::string& run_id, std::int64_t keep,
                       const fs::path& protect) {
  clean_leftovers(run_folder, run_id);
  if (keep <= 0) return;
  std::int64_t kept = 0;
  for (const CatalogEntry& entry : list_checkpoints(run_folder)) {
    if (!entry.complete || entry.run_id != run_id) continue;
    if (kept++ < keep || entry.folder.filename() == protect.filename()) continue;
    with_checkpoint_errors(entry.folder, [&] { remove_checkpoint(entry.folder, run_id); });
  }
}

}  // namespace lamina
