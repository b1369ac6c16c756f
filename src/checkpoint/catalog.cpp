#include "staging.hpp"

#include <algorithm>
#include <charconv>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/manifest.hpp>
#include <lamina/checkpoint/transaction.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lamina {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step_";
constexpr std::string_view temporary_mark = ".tmp-";
constexpr std::string_view replaced_mark = ".replaced-";

// The parts of "step_00000100.tmp-ID".
struct FolderName {
  std::int64_t step = 0;
  std::string base;  // "step_00000100"
  std::string mark;  // ".tmp-ID", ".replaced-ID" or nothing
  [[nodiscard]] bool temporary() const { return mark.find(temporary_mark) != std::string::npos; }
  [[nodiscard]] bool replaced() const { return mark.starts_with(replaced_mark) && !temporary(); }
};

std::optional<FolderName> parse_name(const std::string& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  FolderName result;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, result.step);
  if (error != std::errc() || result.step < 0) return std::nullopt;
  result.base.assign(name.data(), stop);
  result.mark.assign(stop, end);
  const bool known = result.mark.empty() || result.temporary() || result.replaced();
  return known && result.base == checkpoint_name(result.step) ? std::optional(result) : std::nullopt;
}

struct Found {
  fs::path path;
  FolderName name;
};

std::vector<Found> find_folders(const fs::path& run_folder) {
  std::vector<Found> found;
  std::error_code error;
  for (fs::directory_iterator it(run_folder, error), end; !error && it != end; it.increment(error)) {
    if (const auto name = parse_name(it->path().filename().string()); name && it->is_directory(error)) {
      found.push_back({it->path(), *name});
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) throw fs::filesystem_error("list", run_folder, error);
  return found;
}

std::string size_problem(const fs::path& folder, const std::string& name, std::uint64_t expected) {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(folder / name, error);
  if (error) return fmt::format("{} cannot be used ({})", name, error.message());
  if (bytes != expected) return fmt::format("{} has {} bytes instead of {}", name, bytes, expected);
  return {};
}

std::string incompleteness(const fs::path& folder, const Manifest& manifest) {
  for (const ShardFileRecord& file : manifest.files) {
    if (auto problem = size_problem(folder, file.name, file.bytes); !problem.empty()) return problem;
  }
  for (const SideFileRecord& file : manifest.side_files) {
    if (auto problem = size_problem(folder, file.name, file.bytes); !problem.empty()) return problem;
  }
  return {};
}

CatalogEntry examine(const fs::path& folder) {
  CatalogEntry entry;
  entry.folder = folder;
  if (const auto name = parse_name(folder.filename().string())) entry.step = name->step;
  std::error_code error;
  if (!fs::exists(folder / Manifest::file_name, error)) {
    entry.reason = "it has no manifest, so saving it was not finished";
    return entry;
  }
  try {
    const Manifest manifest = read_manifest(folder);
    entry.step = manifest.step;
    entry.sequence = manifest.sequence;
    entry.reason = incompleteness(folder, manifest);
    entry.complete = entry.reason.empty();
  } catch (const CheckpointError& problem) {
    entry.reason = problem.what();
  }
  return entry;
}

bool newer(const CatalogEntry& a, const CatalogEntry& b) {
  if (a.complete != b.complete) return a.complete;
  if (a.sequence != b.sequence) return a.sequence > b.sequence;
  if (a.step != b.step) return a.step > b.step;
  return a.folder < b.folder;
}

bool holds(const std::vector<Found>& folders, const std::string& name) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const Found& f) { return f.name.mark.empty() && f.name.base == name; });
}

// A folder loses its name first, so that a removal that dies half-way leaves nothing that looks like a checkpoint.
void remove_checkpoint(const fs::path& folder) {
  const fs::path doomed = folder.string() + std::string(temporary_mark) + CheckpointTransaction::make_id();
  fs::rename(folder, doomed);
  fs::remove_all(doomed);
}

std::string reasons_of(const std::vector<CatalogEntry>& entries) {
  std::vector<std::string> reasons;
  for (const CatalogEntry& entry : entries) {
    reasons.push_back(fmt::format("{}: {}", entry.folder.filename().string(), entry.reason));
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

fs::path usable_checkpoint(const fs::path& folder) {
  const CatalogEntry entry = examine(folder);
  if (entry.complete) return folder;
  throw CheckpointError(
      one_line(fmt::format("cannot use checkpoint {}", folder.string()), entry.reason, "take another checkpoint"));
}

}  // namespace

std::vector<CatalogEntry> list_checkpoints(const fs::path& run_folder) {
  std::vector<CatalogEntry> entries;
  with_checkpoint_errors(run_folder, [&] {
    const std::vector<Found> folders = find_folders(run_folder);
    for (const Found& found : folders) {
      if (found.name.temporary() || (found.name.replaced() && holds(folders, found.name.base))) continue;
      entries.push_back(examine(found.path));
    }
  });
  std::sort(entries.begin(), entries.end(), newer);
  return entries;
}

std::optional<fs::path> newest_checkpoint(const fs::path& run_folder, std::vector<std::string>* skipped) {
  const std::vector<CatalogEntry> entries = list_checkpoints(run_folder);
  if (skipped != nullptr) {
    for (const CatalogEntry& entry : entries) {
      if (!entry.complete) skipped->push_back(fmt::format("{}: {}", entry.folder.string(), entry.reason));
    }
  }
  if (entries.empty() || !entries.front().complete) return std::nullopt;
  return entries.front().folder;
}

fs::path resolve_checkpoint(const fs::path& path) {
  std::error_code error;
  const fs::path given = path.has_filename() ? path : path.parent_path();  // "run/" means "run"
  if (!fs::exists(given, error)) {
    throw CheckpointError(one_line(fmt::format("cannot use checkpoint {}", path.string()), "there is no such folder",
                                   "name a checkpoint or a run folder"));
  }
  if (fs::is_regular_file(given, error) && given.filename() == "latest") {
    std::string name = read_file(given);
    while (name.ends_with('\n')) name.pop_back();
    return usable_checkpoint(given.parent_path() / name);
  }
  if (fs::exists(given / Manifest::file_name, error) || parse_name(given.filename().string())) {
    return usable_checkpoint(given);
  }
  if (auto newest = newest_checkpoint(given)) return *newest;
  const std::vector<CatalogEntry> entries = list_checkpoints(given);
  throw CheckpointError(one_line(fmt::format("no usable checkpoint in {}", path.string()),
                                 entries.empty() ? "it holds no folder step_N" : reasons_of(entries),
                                 "name a checkpoint or a run folder"));
}

void clean_leftovers(const fs::path& run_folder) {
  with_checkpoint_errors(run_folder, [&] {
    const std::vector<Found> folders = find_folders(run_folder);
    for (const Found& found : folders) {
      if (found.name.temporary()) fs::remove_all(found.path);
      if (!found.name.replaced()) continue;
      if (holds(folders, found.name.base) && examine(run_folder / found.name.base).complete) {
        remove_checkpoint(found.path);
      } else if (!fs::exists(run_folder / found.name.base)) {
        fs::rename(found.path, run_folder / found.name.base);
      }
    }
  });
}

void prune_checkpoints(const fs::path& run_folder, std::int64_t keep, const fs::path& protect) {
  clean_leftovers(run_folder);
  if (keep <= 0) return;
  std::int64_t kept = 0;
  for (const CatalogEntry& entry : list_checkpoints(run_folder)) {
    if (!entry.complete || kept++ < keep || entry.folder.filename() == protect.filename()) continue;
    with_checkpoint_errors(entry.folder, [&] { remove_checkpoint(entry.folder); });
  }
}

}  // namespace lamina
