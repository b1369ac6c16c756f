#include "staging.hpp"
#include "step_folders.hpp"

#include <algorithm>
#include <cerrno>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/manifest.hpp>
#include <lamina/checkpoint/proof.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace lamina {

namespace {

namespace fs = std::filesystem;

constexpr const char* name_one = "name a checkpoint or a run folder";

// What stands in the way of using a file or folder. "Not there" is known; other errors mean that nobody knows.
struct Obstacle {
  std::string reason;  // empty: none
  bool unknown = false;
};

bool known_absence(const std::error_code& error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory ||
         error == std::errc::too_many_symbolic_link_levels;
}

Obstacle file_obstacle(const fs::path& folder, const std::string& name, std::uint64_t expected) {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(folder / name, error);
  if (!error && ::faccessat(AT_FDCWD, (folder / name).c_str(), R_OK, AT_EACCESS) != 0)
    error.assign(errno, std::generic_category());
  if (error) return {fmt::format("{} cannot be used ({})", name, error.message()), !known_absence(error)};
  if (bytes != expected) return {fmt::format("{} has {} bytes instead of {}", name, bytes, expected)};
  return {};
}

Obstacle files_obstacle(const fs::path& folder, const Manifest& manifest) {
  for (const ShardFileRecord& file : manifest.files) {
    if (auto obstacle = file_obstacle(folder, file.name, file.bytes); !obstacle.reason.empty()) return obstacle;
  }
  for (const SideFileRecord& file : manifest.side_files) {
    if (auto obstacle = file_obstacle(folder, file.name, file.bytes); !obstacle.reason.empty()) return obstacle;
  }
  return {};
}

// Before the manifest is read.
Obstacle folder_obstacle(const fs::path& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (fs::is_symlink(fs::symlink_status(folder)) && (!fs::exists(status) || known_absence(error))) {
    return {fmt::format("it is a link that leads nowhere ({})", error ? error.message() : "its target is not there")};
  }
  if (error && !known_absence(error)) return {fmt::format("it cannot be looked at ({})", error.message()), true};
  if (!fs::is_directory(status)) return {"it is not a folder"};
  const fs::path manifest = folder / Manifest::file_name;
  const bool there = fs::exists(fs::status(manifest, error));
  if (error && !known_absence(error)) return {fmt::format("it cannot be read ({})", error.message()), true};
  if (!there) return {"it has no manifest, so saving it was not finished"};
  if (::faccessat(AT_FDCWD, manifest.c_str(), R_OK, AT_EACCESS) == 0) return {};
  error.assign(errno, std::generic_category());
  return {fmt::format("its manifest cannot be read ({})", error.message()), true};
}

// A folder that is named after another step was copied or renamed by hand.
std::string step_problem(const fs::path& folder, const Manifest& manifest) {
  const auto name = parse_step_name(folder.filename().string());
  if (!name || name->step == manifest.step) return {};
  return fmt::format("its manifest is that of step {}", manifest.step);
}

bool newer(const CatalogEntry& a, const CatalogEntry& b) {
  if (a.complete != b.complete) return a.complete;
  if (a.sequence != b.sequence) return a.sequence > b.sequence;
  if (a.step != b.step) return a.step > b.step;
  return a.folder < b.folder;
}

CheckpointCandidates one_checkpoint(const fs::path& folder) {
  CatalogEntry entry = examine_checkpoint(folder);
  if (entry.complete) return {{std::move(entry)}, {}, true};
  throw CheckpointError(
      one_line(fmt::format("cannot use checkpoint {}", folder.string()), entry.reason,
               entry.unreadable ? "give yourself the permission to read it" : std::string(take_another)));
}

}  // namespace

CatalogEntry examine_checkpoint(const fs::path& folder) {
  CatalogEntry entry;
  entry.folder = folder;
  if (const auto name = parse_step_name(folder.filename().string())) entry.step = name->step;
  Obstacle obstacle = folder_obstacle(folder);
  if (obstacle.reason.empty()) {
    try {
      const Manifest manifest = read_manifest(folder);
      entry.sequence = manifest.sequence;
      entry.run_id = manifest.run_id;
      obstacle = {step_problem(folder, manifest)};
      if (obstacle.reason.empty()) {
        entry.step = manifest.step;
        obstacle = files_obstacle(folder, manifest);
      }
    } catch (const CheckpointError& problem) {
      obstacle = {reason_of(problem)};
    }
  }
  entry.reason = obstacle.reason;
  entry.unreadable = obstacle.unknown;
  entry.complete = entry.reason.empty();
  return entry;
}

std::vector<CatalogEntry> list_checkpoints(const fs::path& run_folder) {
  std::vector<CatalogEntry> entries;
  with_checkpoint_errors(run_folder, [&] {
    const std::vector<StepFolder> folders = find_step_folders(run_folder);
    for (const StepFolder& found : folders) {
      if (found.name.temporary() || (found.name.replaced() && holds_step(folders, found.name.base))) continue;
      entries.push_back(examine_checkpoint(found.path));
    }
  });
  std::sort(entries.begin(), entries.end(), newer);
  return entries;
}

CheckpointCandidates candidates_in(const fs::path& run_folder) {
  CheckpointCandidates result;
  for (CatalogEntry& entry : list_checkpoints(run_folder)) {
    if (entry.unreadable) {
      throw CheckpointError(
          one_line(fmt::format("cannot tell which checkpoint of {} is the newest usable one", run_folder.string()),
                   fmt::format("{}: {}", entry.folder.filename().string(), entry.reason),
                   "give yourself the permission to read it, or name another checkpoint"));
    }
    (entry.complete ? result.complete : result.others).push_back(std::move(entry));
  }
  return result;
}

void throw_none_usable(const fs::path& run_folder, const std::vector<CatalogEntry>& others, const std::string& advice) {
  std::vector<std::string> reasons;
  for (const CatalogEntry& entry : others) {
    reasons.push_back(fmt::format("{}: {}", entry.folder.filename().string(), entry.reason));
  }
  throw CheckpointError(one_line(
      fmt::format("no usable checkpoint in {}", run_folder.string()),
      others.empty() ? std::string("it holds no folder step_N") : fmt::format("{}", fmt::join(reasons, "; ")), advice));
}

CheckpointCandidates checkpoint_candidates(const fs::path& path) {
  std::error_code error;
  const fs::path given = path.has_filename() ? path : path.parent_path();  // "run/" means "run"
  const fs::file_status status = fs::status(given, error);
  if (error && !known_absence(error)) {
    throw CheckpointError(one_line(fmt::format("cannot use checkpoint {}", path.string()), error.message(),
                                   "give yourself the permission to read it"));
  }
  if (!fs::exists(status) && !fs::is_symlink(fs::symlink_status(given, error))) {
    throw CheckpointError(
        one_line(fmt::format("cannot use checkpoint {}", path.string()), "there is no such folder", name_one));
  }
  if (fs::is_regular_file(status) && given.filename() == "latest") {
    std::string name = read_file(given);
    while (name.ends_with('\n')) name.pop_back();
    return one_checkpoint(given.parent_path() / name);
  }
  if (fs::exists(given / Manifest::file_name, error) || parse_step_name(given.filename().string())) {
    return one_checkpoint(given);
  }
  CheckpointCandidates result = candidates_in(given);
  if (result.complete.empty()) throw_none_usable(path, result.others, name_one);
  return result;
}

}  // namespace lamina
