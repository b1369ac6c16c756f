#include "consolidate/model_config_json.hpp"

#include <lamina/base/error.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lamina {

namespace {

using nlohmann::ordered_json;  // keeps the order of the fields

std::string file_text(const ordered_json& object) { return object.dump(2) + "\n"; }

}  // namespace

std::string with_dtype(const std::string& config_json, DType dtype, const std::string& where) {
  ordered_json config = ordered_json::parse(config_json, nullptr, false);
  if (!config.is_object()) {
    throw CheckpointError(one_line(fmt::format("cannot export {}", where), "its config.json is not a JSON object"));
  }
  const char* name = dtype == DType::bf16 ? "bfloat16" : "float32";
  const bool has_new_field = config.contains("dtype");
  if (has_new_field) config["dtype"] = name;
  if (config.contains("torch_dtype") || !has_new_field) config["torch_dtype"] = name;
  return file_text(config);
}

std::string derive_generation_config(const std::string& config_json) {
  const ordered_json config = ordered_json::parse(config_json);
  ordered_json result;
  result["_from_model_config"] = true;
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "transformers_version"}) {
    if (config.contains(key) && !config.at(key).is_null()) result[key] = config.at(key);
  }
  return file_text(result);
}

}  // namespace lamina
