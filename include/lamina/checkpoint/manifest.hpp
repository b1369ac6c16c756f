// The manifest: what a checkpoint holds, written last. A checkpoint folder without a readable manifest is not a
// checkpoint.
//
// RUN/step_00000100/ holds rank_00000.h5 ..., model/ (config.json, tokenizer files) and manifest.json. The manifest
// lists every file with its size, every slice of every unit with its checksums, and the state that is one value for the
// whole run. It carries a checksum of itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <lamina/shard/flat_layout.hpp>
#include <lamina/shard/packed_tensors.hpp>
#include <lamina/shard/unit_spec.hpp>

namespace lamina {

// What is kept for each element of the model: the fp32 master value, up to two moments of the optimizer (one: exp_avg)
// and, if the run averages its weights, their moving average.
enum class StateKind : std::uint8_t { param, exp_avg, exp_avg_sq, ema };
inline constexpr StateKind all_state_kinds[] = {StateKind::param, StateKind::exp_avg, StateKind::exp_avg_sq,
                                                StateKind::ema};
[[nodiscard]] const char* name_of(StateKind kind);  // "param", "exp_avg", "exp_avg_sq", "ema": also the dataset's name

struct MomentChecksums {
  std::uint64_t exp_avg = 0;
  std::optional<std::uint64_t> exp_avg_sq;  // none for optimizers with one moment; of the elements that have it
  bool operator==(const MomentChecksums&) const = default;
};

// One contiguous part of a unit's flat buffer (padding never included) in one shard file. Checksums are XXH3-64 of the
// fp32 bytes.
struct SliceRecord {
  std::size_t unit = 0;  // index into Manifest::units
  FlatRange range;       // flat coordinates of that unit; may be empty
  std::uint64_t param = 0;
  std::optional<MomentChecksums> moments;  // none for optimizers without state
  std::optional<std::uint64_t> ema;        // in all slices that have elements, or in none
  bool operator==(const SliceRecord&) const = default;
};

struct ShardFileRecord {
  std::string name;  // "rank_00000.h5"
  std::uint64_t bytes = 0;
  std::vector<SliceRecord> slices;
  bool operator==(const ShardFileRecord&) const = default;
};

struct SideFileRecord {
  std::string name;  // relative to the checkpoint: "model/config.json"
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  // XXH3-64 of the content
  bool operator==(const SideFileRecord&) const = default;
};

struct Manifest {
  static constexpr std::int64_t current_version = 1;
  static constexpr const char* file_name = "manifest.json";

  std::int64_t version = current_version;
  std::uint64_t sequence = 0;  // grows with every save into a run folder: the newest checkpoint has the largest
  std::string run_id;          // the same through all lives of a run; empty in manifests of older versions
  std::int64_t step = 0;       // steps taken, skipped ones too
  std::uint64_t tokens_seen = 0;
  std::int64_t world_size = 1;
  std::int64_t shard_count = 1;
  std::int64_t alignment = FlatLayout::default_alignment;
  std::string strategy;
  std::vector<UnitSpec> units;
  std::string optimizer = "adamw";  // its kind; a manifest without it is AdamW's
  std::int64_t optimizer_step = 0;  // updates made, for bias correction
  // Tensors without a second moment in a checkpoint that has some (Muon's).
  std::vector<std::string> no_exp_avg_sq;
  // Steps without an update because loss or gradient were not finite; 0 in a manifest without them.
  std::int64_t skipped_steps = 0;
  std::int64_t skipped_in_a_row = 0;  // of these, up to and with the last step
  std::uint64_t seed = 0;
  std::uint64_t next_sample = 0;    // global sample index the run continues with
  std::uint64_t data_restarts = 0;  // how often the data began anew because something that decides their order changed
  // What data, validation data and tokenizer were (data/data_identity.hpp, a hash); empty: not known, or none.
  std::string data_identity, validation_identity, tokenizer_identity;
  std::string config_text;        // the resolved INI
  std::string model_config_json;  // config.json as it was read
  std::string extra_json = "{}";  // an object with whatever else the trainer wants back (schedule, scaler, ...)
  std::vector<ShardFileRecord> files;
  std::vector<SideFileRecord> side_files;

  bool operator==(const Manifest&) const = default;
};

// What exp_avg_sq holds of a unit: the datasets leave out what has none.
[[nodiscard]] PackedTensors second_moments(const Manifest& manifest, std::size_t unit);

// The JSON text, with the config's hash and the manifest's own checksum. Throws InternalError when extra_json is not an
// object.
[[nodiscard]] std::string to_json(const Manifest& manifest);

// `where` names the text in messages. Throws CheckpointError for another version, a wrong checksum, or anything
// missing, malformed or contradictory: slices must cover every element of every unit exactly once, file names must be
// plain and different.
[[nodiscard]] Manifest parse_manifest(const std::string& text, const std::string& where);

// Reads FOLDER/manifest.json.
[[nodiscard]] Manifest read_manifest(const std::filesystem::path& folder);

}  // namespace lamina
