#include "config_reader.hpp"
#include "families/family.hpp"

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/text.hpp>
#include <lamina/model/model_config.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lamina {
namespace {

const Family& chosen_family(const ConfigReader& json) {
  const std::string model_type = json.text("model_type");
  if (const Family* family = find_family(model_type)) return *family;
  std::vector<std::string> known;
  for (const Family& family : all_families()) known.emplace_back(family.model_type);
  json.refuse("model_type", "this family is not implemented", fmt::format("known: {}", fmt::join(known, ", ")));
}

// What no family here implements, whatever its name.
void refuse_foreign_keys(const ConfigReader& json) {
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size"}) {
    json.must_be_absent(key, "mixture of experts is not implemented");
  }
  for (const char* key : {"quantization_config", "compression_config"}) {
    json.must_be_absent(key, "quantised weights are not implemented");
  }
  if (json.positive_or("partial_rotary_factor", 1) != 1) {
    json.refuse("partial_rotary_factor", "rotating only a part of each head is not implemented");
  }
  json.must_be_flag("is_encoder_decoder", false, "only decoders are implemented");
  json.must_be_flag("add_cross_attention", false, "cross attention is not implemented");
}

}  // namespace

ModelConfig parse_model_config(const std::string& json_text, const std::string& where) {
  const nlohmann::json json = ConfigReader::parse(json_text, where);
  const ConfigReader reader(json, where);
  const Family& family = chosen_family(reader);
  refuse_foreign_keys(reader);
  ModelConfig config = family.parse(reader);
  config.warnings = reader.slips();
  return config;
}

ModelConfig read_model_config(const std::filesystem::path& folder) {
  require_model_folder(folder);
  const std::filesystem::path path = folder / "config.json";
  return parse_model_config(read_file(path), path.string());
}

std::vector<std::int64_t> read_generation_ends(const std::filesystem::path& folder, const ModelConfig& config) {
  const std::filesystem::path path = folder / "generation_config.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return config.eos_ids;
  const std::string where = path.string();
  const nlohmann::json json = ConfigReader::parse(read_file(path), where);
  const ConfigReader reader(json, where);
  return reader.has("eos_token_id") ? reader.token_ids("eos_token_id") : config.eos_ids;
}

}  // namespace lamina
