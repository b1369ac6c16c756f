#include "inspect/describe.hpp"

#include "support/table.hpp"

#include <lamina/base/error.hpp>
#include <lamina/base/hash.hpp>
#include <lamina/base/text.hpp>
#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/digest.hpp>
#include <lamina/checkpoint/manifest.hpp>
#include <lamina/checkpoint/proof.hpp>
#include <lamina/hdf5/file.hpp>
#include <lamina/safetensors/reader.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lamina {

namespace {

namespace fs = std::filesystem;

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::uint64_t bytes_of(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const ShardFileRecord& file : manifest.files) bytes += file.bytes;
  for (const SideFileRecord& file : manifest.side_files) bytes += file.bytes;
  return bytes;
}

std::string unit_table(const Manifest& manifest) {
  Table table({"unit", "tensor", "shape", "elements>", "notes"});
  std::int64_t elements = 0, tensors = 0;
  for (const UnitSpec& unit : manifest.units) {
    for (const TensorSpec& tensor : unit.tensors) {
      std::string notes = tensor.decay ? "decay" : "";
      if (!tensor.aliases.empty()) {
        notes += fmt::format("{}also {}", notes.empty() ? "" : ", ", fmt::join(tensor.aliases, ", "));
      }
      table.add({unit.name, tensor.name, shape_text(tensor.shape), fmt::to_string(tensor.elements()), notes});
      elements += tensor.elements();
      ++tensors;
    }
  }
  return table.text() + fmt::format("{} tensors, {} elements in {} units\n", tensors, elements, manifest.units.size());
}

std::string file_table(const Manifest& manifest) {
  Table table({"file", "size>", "units>", "elements>"});
  for (const ShardFileRecord& file : manifest.files) {
    std::int64_t elements = 0;
    for (const SliceRecord& slice : file.slices) elements += slice.range.length();
    table.add({file.name, human_bytes(file.bytes), fmt::to_string(file.slices.size()), fmt::to_string(elements)});
  }
  for (const SideFileRecord& file : manifest.side_files) table.add({file.name, human_bytes(file.bytes), "", ""});
  return table.text();
}

// What is held for each element, as the slices say.
std::string state_text(const Manifest& manifest) {
  bool first = false, second = false, average = false;
  std::size_t tensors = 0;
  for (const UnitSpec& unit : manifest.units) tensors += unit.tensors.size();
  for (const ShardFileRecord& file : manifest.files) {
    for (const SliceRecord& slice : file.slices) {
      if (slice.range.length() == 0) continue;
      first = first || slice.moments;
      second = second || (slice.moments && slice.moments->exp_avg_sq);
      average = average || slice.ema;
    }
  }
  std::vector<std::string> kinds{name_of(StateKind::param)};
  if (first) kinds.emplace_back(name_of(StateKind::exp_avg));
  if (second) kinds.emplace_back(name_of(StateKind::exp_avg_sq));
  if (second && !manifest.no_exp_avg_sq.empty()) {
    kinds.back() += fmt::format(" (of {} of {} tensors)", tensors - manifest.no_exp_avg_sq.size(), tensors);
  }
  if (average) kinds.emplace_back(name_of(StateKind::ema));
  return fmt::format("{}", fmt::join(kinds, ", "));
}

std::string describe_checkpoint(const fs::path& folder) {
  const Manifest manifest = read_manifest(checkpoint_candidates(folder).complete.front().folder);
  const std::string& config = manifest.config_text;
  const std::string skipped =
      manifest.skipped_steps > 0 ? fmt::format(" ({} steps skipped)", manifest.skipped_steps) : std::string();
  return fmt::format(
      "checkpoint {} (complete, {})\n"
      "  step {}, {} tokens seen, optimizer step {}{}, next sample {}, seed {}\n"
      "  optimizer {}, holds {}\n"
      "  saved by {} ranks, strategy {}, {} shards, alignment {}, config {}\n\n{}\n{}",
      folder.string(), human_bytes(bytes_of(manifest)), manifest.step, manifest.tokens_seen, manifest.optimizer_step,
      skipped, manifest.next_sample, manifest.seed, manifest.optimizer, state_text(manifest), manifest.world_size,
      manifest.strategy, manifest.shard_count, manifest.alignment, hex_digest(xxh3_64(config.data(), config.size())),
      unit_table(manifest), file_table(manifest));
}

std::string describe_run(const fs::path& folder, const std::vector<CatalogEntry>& entries) {
  Table table({"checkpoint", "step>", "save>", "state"});
  std::string taken;
  for (const CatalogEntry& entry : entries) {
    std::string state = entry.complete ? "complete" : "unusable: " + entry.reason;
    if (entry.complete && taken.empty()) {
      const std::string damage = damage_of(entry);
      if (damage.empty()) {
        taken = entry.folder.string();
        state += ", checksums proved";
      } else {
        state = "damaged: " + damage;
      }
    }
    table.add({entry.folder.filename().string(), fmt::to_string(entry.step), fmt::to_string(entry.sequence),
               std::move(state)});
  }
  return fmt::format("run folder {}\n\n{}{}\n", folder.string(), table.text(),
                     taken.empty() ? "no usable checkpoint" : "newest: " + taken);
}

std::string metadata_text(const SafetensorsHeader& header) {
  std::string text;
  for (const auto& [key, value] : header.metadata) text += fmt::format("  {} = {}\n", key, value);
  return text;
}

std::string tensor_table(const std::vector<const SafetensorsFile*>& files) {
  Table table({"tensor", "dtype", "shape", "size>", "file"});
  std::uint64_t bytes = 0;
  std::int64_t elements = 0;
  std::size_t tensors = 0;
  for (const SafetensorsFile* file : files) {
    for (const SafetensorsEntry& entry : file->header().tensors) {
      table.add({entry.name, entry.dtype_name, shape_text(entry.shape), human_bytes(entry.end - entry.begin),
                 file->path().filename().string()});
      bytes += entry.end - entry.begin;
      elements += entry.elements;
      ++tensors;
    }
  }
  return table.text() + fmt::format("{} tensors, {} elements, {}\n", tensors, elements, human_bytes(bytes));
}

std::string describe_weights(const fs::path& folder) {
  const SafetensorsFolder weights(folder);
  std::vector<const SafetensorsFile*> files;
  for (const SafetensorsFile& file : weights.files()) files.push_back(&file);
  return fmt::format("model folder {}\n\n{}", folder.string(), tensor_table(files));
}

std::string describe_file(const fs::path& path) {
  if (hdf5::File::looks_like_hdf5(path)) return describe_hdf5(path);
  if (path.extension() == ".safetensors") {
    const SafetensorsFile file(path);
    return fmt::format("safetensors file {}\n{}\n{}", path.string(), metadata_text(file.header()),
                       tensor_table({&file}));
  }
  throw DataError(one_line(fmt::format("cannot tell what {} is", path.string()), "it is neither HDF5 nor .safetensors",
                           "name a run, a checkpoint, a model folder, a safetensors or an HDF5 file"));
}

}  // namespace

std::string describe(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw DataError(one_line(fmt::format("cannot read {}", path.string()), "there is no such file or folder"));
  }
  if (!fs::is_directory(path, error)) return describe_file(path);
  if (fs::exists(path / Manifest::file_name, error)) return describe_checkpoint(path);
  if (SafetensorsFolder::present(path)) return describe_weights(path);
  if (const auto entries = list_checkpoints(path); !entries.empty()) return describe_run(path, entries);
  return describe_checkpoint(path);  // says why it is none
}

}  // namespace lamina
