#include "manifest_check.hpp"

#include <algorithm>
#include <charconv>
#include <concepts>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/hash.hpp>
#include <lamina/checkpoint/manifest.hpp>
#include <lamina/checkpoint/proof.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lamina {

namespace {

using nlohmann::json;

constexpr const char* format_name = "lamina checkpoint";
constexpr const char* no_second_key = "no_exp_avg_sq";

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

std::string hash_of(const std::string& text) { return hex(xxh3_64(text.data(), text.size())); }

// Bytes that are not UTF-8 (a path in the config, say) become U+FFFD: no reason to lose a checkpoint.
std::string dump(const json& object, int indent = -1) {
  return object.dump(indent, ' ', false, json::error_handler_t::replace);
}

json tensor_to_json(const TensorSpec& tensor) {
  return {{"name", tensor.name}, {"shape", tensor.shape}, {"decay", tensor.decay}, {"aliases", tensor.aliases}};
}

json unit_to_json(const UnitSpec& unit) {
  json tensors = json::array();
  for (const TensorSpec& tensor : unit.tensors) tensors.push_back(tensor_to_json(tensor));
  return {{"name", unit.name}, {"tensors", std::move(tensors)}};
}

json slice_to_json(const SliceRecord& slice) {
  json object = {
      {"unit", slice.unit}, {"begin", slice.range.begin}, {"end", slice.range.end}, {"param", hex(slice.param)}};
  if (slice.moments) {
    object["exp_avg"] = hex(slice.moments->exp_avg);
    if (slice.moments->exp_avg_sq) object["exp_avg_sq"] = hex(*slice.moments->exp_avg_sq);
  }
  if (slice.ema) object["ema"] = hex(*slice.ema);
  return object;
}

json file_to_json(const ShardFileRecord& file) {
  json slices = json::array();
  for (const SliceRecord& slice : file.slices) slices.push_back(slice_to_json(slice));
  return {{"name", file.name}, {"bytes", file.bytes}, {"slices", std::move(slices)}};
}

// Typed access that never converts: a float, a bool or a text where an integer belongs is an error.
[[noreturn]] void wrong(const char* key, const char* why) { throw DataError(fmt::format("\"{}\" {}", key, why)); }

const json& member(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) wrong(key, "is missing");
  return object.at(key);
}

template <std::integral Integer>
Integer integer(const json& object, const char* key) {
  const json& value = member(object, key);
  if constexpr (std::is_unsigned_v<Integer>) {
    if (!value.is_number_unsigned()) wrong(key, "is not a count");
  } else {
    if (!value.is_number_integer()) wrong(key, "is not an integer");
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) wrong(key, "is too large");
  }
  return value.get<Integer>();
}

std::string text(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_string()) wrong(key, "is not a text");
  return value.get<std::string>();
}

std::uint64_t checksum(const json& object, const char* key) {
  const std::string digits = text(object, key);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) wrong(key, "is not a checksum");
  return value;
}

const json& list(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_array()) wrong(key, "is not a list");
  return value;
}

std::vector<std::string> texts(const json& object, const char* key) {
  std::vector<std::string> result;
  for (const json& value : list(object, key)) {
    if (!value.is_string()) wrong(key, "holds something that is not a text");
    result.push_back(value.get<std::string>());
  }
  return result;
}

TensorSpec tensor_from_json(const json& object) {
  TensorSpec tensor;
  tensor.name = text(object, "name");
  for (const json& size : list(object, "shape")) {
    if (!size.is_number_integer()) wrong("shape", "holds something that is not an integer");
    tensor.shape.push_back(size.get<std::int64_t>());
  }
  const json& decay = member(object, "decay");
  if (!decay.is_boolean()) wrong("decay", "is not true or false");
  tensor.decay = decay.get<bool>();
  tensor.aliases = texts(object, "aliases");
  return tensor;
}

UnitSpec unit_from_json(const json& object) {
  UnitSpec unit;
  unit.name = text(object, "name");
  for (const json& tensor : list(object, "tensors")) unit.tensors.push_back(tensor_from_json(tensor));
  return unit;
}

SliceRecord slice_from_json(const json& object) {
  SliceRecord slice;
  slice.unit = integer<std::size_t>(object, "unit");
  slice.range = {integer<std::int64_t>(object, "begin"), integer<std::int64_t>(object, "end")};
  slice.param = checksum(object, "param");
  if (object.contains("exp_avg") || object.contains("exp_avg_sq")) {
    slice.moments = MomentChecksums{checksum(object, "exp_avg"), std::nullopt};
    if (object.contains("exp_avg_sq")) slice.moments->exp_avg_sq = checksum(object, "exp_avg_sq");
  }
  if (object.contains("ema")) slice.ema = checksum(object, "ema");
  return slice;
}

ShardFileRecord file_from_json(const json& object) {
  ShardFileRecord file;
  file.name = text(object, "name");
  file.bytes = integer<std::uint64_t>(object, "bytes");
  for (const json& slice : list(object, "slices")) file.slices.push_back(slice_from_json(slice));
  return file;
}

void read_values(const json& object, Manifest& manifest) {
  manifest.sequence = integer<std::uint64_t>(object, "sequence");
  if (object.contains("run_id")) manifest.run_id = text(object, "run_id");
  manifest.step = integer<std::int64_t>(object, "step");
  manifest.tokens_seen = integer<std::uint64_t>(object, "tokens_seen");
  manifest.world_size = integer<std::int64_t>(object, "world_size");
  manifest.shard_count = integer<std::int64_t>(object, "shard_count");
  manifest.alignment = integer<std::int64_t>(object, "alignment");
  manifest.strategy = text(object, "strategy");
  if (object.contains("optimizer")) manifest.optimizer = text(object, "optimizer");
  if (object.contains(no_second_key)) manifest.no_exp_avg_sq = texts(object, no_second_key);
  manifest.optimizer_step = integer<std::int64_t>(object, "optimizer_step");
  if (object.contains("skipped_steps")) {
    manifest.skipped_steps = integer<std::int64_t>(object, "skipped_steps");
    manifest.skipped_in_a_row = integer<std::int64_t>(object, "skipped_in_a_row");
  }
  manifest.seed = integer<std::uint64_t>(object, "seed");
  manifest.next_sample = integer<std::uint64_t>(object, "next_sample");
  if (object.contains("data_restarts")) manifest.data_restarts = integer<std::uint64_t>(object, "data_restarts");
  if (object.contains("data_identity")) manifest.data_identity = text(object, "data_identity");
  if (object.contains("validation_identity")) manifest.validation_identity = text(object, "validation_identity");
  if (object.contains("tokenizer_identity")) manifest.tokenizer_identity = text(object, "tokenizer_identity");
  manifest.config_text = text(object, "config");
  manifest.model_config_json = text(object, "model_config");
  const json& extra = member(object, "extra");
  if (!extra.is_object()) wrong("extra", "is not an object");
  manifest.extra_json = extra.dump();
}

Manifest from_json(json& object) {
  if (text(object, "format") != format_name) wrong("format", "is not that of a Lamina checkpoint");
  Manifest manifest;
  manifest.version = integer<std::int64_t>(object, "version");
  if (manifest.version != Manifest::current_version) {
    throw DataError(fmt::format("it has version {} and this program reads version {}", manifest.version,
                                Manifest::current_version));
  }
  const std::uint64_t expected = checksum(object, "checksum");
  object.erase("checksum");
  const std::string content = dump(object);
  if (xxh3_64(content.data(), content.size()) != expected) {
    throw DataError("its checksum does not match its content, so it was changed or damaged");
  }
  read_values(object, manifest);
  for (const json& unit : list(object, "units")) manifest.units.push_back(unit_from_json(unit));
  for (const json& file : list(object, "files")) manifest.files.push_back(file_from_json(file));
  for (const json& file : list(object, "side_files")) {
    manifest.side_files.push_back(
        {text(file, "name"), integer<std::uint64_t>(file, "bytes"), checksum(file, "checksum")});
  }
  return manifest;
}

}  // namespace

const char* name_of(StateKind kind) {
  switch (kind) {
    case StateKind::param:
      return "param";
    case StateKind::exp_avg:
      return "exp_avg";
    case StateKind::exp_avg_sq:
      return "exp_avg_sq";
    case StateKind::ema:
      return "ema";
  }
  return "?";
}

PackedTensors second_moments(const Manifest& manifest, std::size_t unit) {
  std::vector<bool> kept;
  for (const TensorSpec& tensor : manifest.units.at(unit).tensors) {
    kept.push_back(std::ranges::find(manifest.no_exp_avg_sq, tensor.name) == manifest.no_exp_avg_sq.end());
  }
  return {manifest.units[unit], std::move(kept)};
}

std::string to_json(const Manifest& manifest) {
  json extra = json::parse(manifest.extra_json, nullptr, false);
  require(extra.is_object(), "Manifest: extra_json is a JSON object");
  json units = json::array(), files = json::array(), side_files = json::array();
  for (const UnitSpec& unit : manifest.units) units.push_back(unit_to_json(unit));
  for (const ShardFileRecord& file : manifest.files) files.push_back(file_to_json(file));
  for (const SideFileRecord& file : manifest.side_files) {
    side_files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"checksum", hex(file.checksum)}});
  }
  json object = {{"format", format_name},
                 {"version", manifest.version},
                 {"sequence", manifest.sequence},
                 {"run_id", manifest.run_id},
                 {"step", manifest.step},
                 {"tokens_seen", manifest.tokens_seen},
                 {"world_size", manifest.world_size},
                 {"shard_count", manifest.shard_count},
                 {"alignment", manifest.alignment},
                 {"strategy", manifest.strategy},
                 {"units", std::move(units)},
                 {"optimizer", manifest.optimizer},
                 {"optimizer_step", manifest.optimizer_step},
                 {"skipped_steps", manifest.skipped_steps},
                 {"skipped_in_a_row", manifest.skipped_in_a_row},
                 {"seed", manifest.seed},
                 {"next_sample", manifest.next_sample},
                 {"data_restarts", manifest.data_restarts},
                 {"data_identity", manifest.data_identity},
                 {"validation_identity", manifest.validation_identity},
                 {"tokenizer_identity", manifest.tokenizer_identity},
                 {"config", manifest.config_text},
                 {"config_hash", hash_of(manifest.config_text)},
                 {"model_config", manifest.model_config_json},
                 {"extra", std::move(extra)},
                 {"files", std::move(files)},
                 {"side_files", std::move(side_files)}};
  if (!manifest.no_exp_avg_sq.empty()) object[no_second_key] = manifest.no_exp_avg_sq;
  // nlohmann's objects are sorted by key, so that the text is a function of the content.
  object["checksum"] = hash_of(dump(object));
  return dump(object, 1) + "\n";
}

Manifest parse_manifest(const std::string& content, const std::string& where) {
  Manifest manifest;
  try {
    json object = json::parse(content);
    manifest = from_json(object);
  } catch (const json::exception& error) {
    throw CheckpointError(one_line(fmt::format("cannot use {}", where), error.what(), take_another));
  } catch (const DataError& error) {
    throw CheckpointError(one_line(fmt::format("cannot use {}", where), error.what(), take_another));
  }
  check_manifest(manifest, where);
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / Manifest::file_name;
  std::string content;
  try {
    content = read_file(path);
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
  return parse_manifest(content, path.string());
}

}  // namespace lamina
