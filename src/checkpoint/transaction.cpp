#include "staging.hpp"
#include "step_folders.hpp"

#include <chrono>
#include <functional>
#include <random>

#include <lamina/base/check.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/hash.hpp>
#include <lamina/base/log.hpp>
#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/transaction.hpp>
#include <lamina/checkpoint/upkeep.hpp>

#include <fmt/format.h>
#include <unistd.h>

namespace lamina {

namespace {

namespace fs = std::filesystem;

constexpr const char* config_name = "config.json";

std::uint64_t next_sequence(const fs::path& run_folder) {
  std::uint64_t newest = 0;
  for (const CatalogEntry& entry : list_checkpoints(run_folder)) newest = std::max(newest, entry.sequence);
  return newest + 1;
}

void check_files(const fs::path& folder, const Manifest& manifest) {
  for (const ShardFileRecord& file : manifest.files) {
    const std::uint64_t bytes = fs::file_size(folder / file.name);
    if (bytes == file.bytes) continue;
    throw CheckpointError(one_line(fmt::format("cannot save {}", (folder / file.name).string()),
                                   fmt::format("it has {} bytes instead of {}", bytes, file.bytes),
                                   "check the file system's health and free space"));
  }
}

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("step_{:08}", step); }

std::string CheckpointTransaction::make_id() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{:x}-{:x}-{:x}", std::chrono::duration_cast<std::chrono::milliseconds>(now).count(), ::getpid(),
                     std::random_device{}());
}

CheckpointTransaction::CheckpointTransaction(fs::path run_folder, std::int64_t step, std::string run_id,
                                             const std::string& id)
    : run_(std::move(run_folder)), step_(step), run_id_(std::move(run_id)), mark_(run_id_ + "." + id) {
  require(step_ >= 0 && !run_id_.empty() && !id.empty() && mark_.find('/') == std::string::npos,
          "CheckpointTransaction: a step, a run and an id");
  temporary_ = run_ / fmt::format("{}{}{}", checkpoint_name(step_), temporary_mark, mark_);
  final_ = run_ / checkpoint_name(step_);
}

void CheckpointTransaction::begin() {
  with_checkpoint_errors(temporary_, [&] {
    fs::create_directories(run_);
    clean_leftovers(run_, run_id_);
    if (!fs::create_directory(temporary_)) throw fs::filesystem_error("", std::make_error_code(std::errc::file_exists));
  });
}

void CheckpointTransaction::write_side_files(Manifest& manifest, std::span<const SideFile> side_files) const {
  manifest.side_files.clear();
  const auto write = [&](const std::string& name, const std::string& content) {
    write_file_atomically(temporary_ / "model" / name, content, ExitCode::checkpoint);
    manifest.side_files.push_back({"model/" + name, content.size(), xxh3_64(content.data(), content.size())});
  };
  fs::create_directory(temporary_ / "model");
  if (!manifest.model_config_json.empty()) write(config_name, manifest.model_config_json);
  for (const SideFile& file : side_files) {
    if (file.name != config_name) write(file.name, file.content);
  }
}

// This run's old version of the step, if there is one, keeps a findable name until the new one has taken its place.
void CheckpointTransaction::make_way() const {
  if (!fs::exists(fs::symlink_status(final_))) return;
  const CatalogEntry there = examine_checkpoint(final_);
  if (there.complete && there.run_id == run_id_) {
    fs::rename(final_, fmt::format("{}{}{}", final_.string(), replaced_mark, mark_));
  } else {
    set_aside(final_, there.complete ? "it is a checkpoint of another run" : there.reason);
  }
}

// Whether the new name is known to be on the disk.
bool CheckpointTransaction::put_in_place() const {
  make_way();
  fs::rename(temporary_, final_);
  try {
    sync_path(run_);
    return true;
  } catch (const std::system_error& error) {
    log_warn(
        fmt::format("{} is complete, but {} could not be synced ({}): after a power failure it may be missing; older "
                    "checkpoints are kept",
                    final_.string(), run_.string(), error.code().message()));
    return false;
  }
}

// The checkpoint is safe: nothing here may fail the save. On a disk that is now full, pruning makes the room that
// `latest` needs.
void CheckpointTransaction::tidy_up(std::int64_t keep) const {
  const auto attempt = [&](const std::function<void()>& work, bool speak) {
    try {
      work();
      return true;
    } catch (const std::exception& error) {
      if (speak) log_warn(fmt::format("{} is saved, but tidying up failed: {}", final_.string(), error.what()));
      return false;
    }
  };
  const auto point_to_it = [&] {
    write_file_atomically(run_ / "latest", final_.filename().string() + "\n", ExitCode::checkpoint);
  };
  const bool pointed = attempt(point_to_it, false);
  attempt([&] { prune_checkpoints(run_, run_id_, keep, final_); }, true);
  if (!pointed) attempt(point_to_it, true);
}

fs::path CheckpointTransaction::commit(Manifest manifest, std::span<const SideFile> side_files, std::int64_t keep) {
  bool on_disk = false;
  with_checkpoint_errors(temporary_, [&] {
    manifest.step = step_;
    manifest.run_id = run_id_;
    manifest.sequence = next_sequence(run_);
    check_files(temporary_, manifest);
    write_side_files(manifest, side_files);
    const std::string text = to_json(manifest);
    static_cast<void>(
        parse_manifest(text, (temporary_ / Manifest::file_name).string()));  // what nobody can read is no checkpoint
    write_file_atomically(temporary_ / Manifest::file_name, text, ExitCode::checkpoint);
    on_disk = put_in_place();
  });
  if (on_disk) tidy_up(keep);
  return final_;
}

void CheckpointTransaction::abandon() noexcept {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

}  // namespace lamina
