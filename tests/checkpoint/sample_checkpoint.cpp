#include "checkpoint/sample_checkpoint.hpp"

#include <fstream>

#include <lamina/base/hash.hpp>
#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/transaction.hpp>

namespace lamina::test {

std::vector<UnitSpec> sample_units() {
  return {{"layers.0",
           {{"empty", {0, 4}, true, {}},
            {"scalar", {}, false, {}},
            {"two", {2}, false, {}},
            {"seven", {7}, false, {}},
            {"matrix", {10, 100}, true, {}}}},
          {"head",
           {{"norm", {5}, false, {}}, {"embed.weight", {13, 3}, true, {"lm_head.weight"}}, {"none", {0}, false, {}}}}};
}

float sample_value(const std::string& tensor, std::int64_t element, StateKind kind) {
  if (element % 50 == 49) return -0.0f;
  const std::uint64_t hash =
      xxh3_64(tensor.data(), tensor.size(), static_cast<std::uint64_t>(element) * 4 + static_cast<std::uint64_t>(kind));
  const float value = static_cast<float>(hash % 1'000'003) * 1e-3f - 500.0f;
  if (kind == StateKind::exp_avg_sq) return value * value * 1e-30f;
  return value;
}

std::vector<float> sample_values(const FlatLayout& layout, FlatRange range, StateKind kind) {
  std::vector<float> values(static_cast<std::size_t>(range.length()));
  for (const Span& span : layout.spans(range)) {
    const std::string& name = layout.unit().tensors[span.tensor].name;
    for (std::int64_t i = 0; i < span.length; ++i) {
      values[static_cast<std::size_t>(span.flat_offset - range.begin + i)] =
          sample_value(name, span.tensor_offset + i, kind);
    }
  }
  return values;
}

Manifest sample_manifest(std::int64_t world, const SampleModel& model) {
  Manifest manifest;
  manifest.world_size = world;
  manifest.shard_count = world;
  manifest.alignment = sample_alignment;
  manifest.strategy = "full";
  manifest.units = model.units;
  manifest.no_exp_avg_sq = model.no_exp_avg_sq;
  manifest.tokens_seen = 18'000'000'000'000'000'000u;
  manifest.optimizer_step = 12;
  manifest.seed = 42;
  manifest.next_sample = 77;
  manifest.config_text = "[run]\nseed = 42\n";
  manifest.model_config_json = model.config_json;
  manifest.extra_json = R"({"scaler": 0.1})";
  return manifest;
}

namespace {

void pack(std::vector<float>& values, const FlatLayout& layout, FlatRange range, const PackedTensors& packing) {
  std::vector<float> packed;
  for (const Span& span : layout.spans(range)) {
    if (!packing.holds(span.tensor)) continue;
    const auto begin = values.begin() + (span.flat_offset - range.begin);
    packed.insert(packed.end(), begin, begin + span.length);
  }
  values = std::move(packed);
}

}  // namespace

ShardFileRecord write_sample_shard(const std::filesystem::path& folder, std::int64_t rank, std::int64_t world,
                                   const SampleModel& model) {
  const std::vector<UnitSpec>& units = model.units;
  const Manifest manifest = sample_manifest(world, model);
  std::vector<std::vector<float>> values;
  std::vector<PackedTensors> second;
  std::vector<ShardSlice> slices;
  values.reserve(units.size() * 4);
  for (std::size_t unit = 0; unit < units.size(); ++unit) second.push_back(second_moments(manifest, unit));
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    const FlatLayout layout(units[unit], world, sample_alignment);
    const FlatRange range = layout.owned_range(rank);
    for (const StateKind kind : all_state_kinds) values.push_back(sample_values(layout, range, kind));
    pack(values[4 * unit + 2], layout, range, second[unit]);
    const std::vector<float>* of = &values[4 * unit];
    slices.push_back({unit, range, of[0], of[1], of[2], {}, &second[unit]});
    if (model.averaged) slices.back().ema = of[3];
  }
  return write_shard_file(folder, rank, units, slices);
}

std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& run) {
  const std::vector<CatalogEntry> entries = list_checkpoints(run);
  if (entries.empty() || !entries.front().complete) return std::nullopt;
  return entries.front().folder;
}

std::filesystem::path resolve_checkpoint(const std::filesystem::path& path) {
  return checkpoint_candidates(path).complete.front().folder;
}

std::filesystem::path save_sample(const std::filesystem::path& run, std::int64_t step, std::int64_t world,
                                  std::int64_t keep, const SampleModel& model, const std::string& run_id) {
  CheckpointTransaction transaction(run, step, run_id, CheckpointTransaction::make_id());
  transaction.begin();
  Manifest manifest = sample_manifest(world, model);
  for (std::int64_t rank = 0; rank < world; ++rank) {
    manifest.files.push_back(write_sample_shard(transaction.folder(), rank, world, model));
  }
  const std::vector<SideFile> side_files{{"tokenizer.json", "{\"model\": 1}"}};
  return transaction.commit(std::move(manifest), side_files, keep);
}

void flip_byte(const std::filesystem::path& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 0x10));
}

}  // namespace lamina::test
