// The small JSON files beside exported weights.
#pragma once

#include <string>

#include <lamina/tensor/dtype.hpp>

namespace lamina {

// config.json's text with its dtype fields (torch_dtype, dtype) telling the exported dtype and every other field as it
// was; torch_dtype is added when neither is there. Throws CheckpointError naming `where` when the text is not a JSON
// object.
[[nodiscard]] std::string with_dtype(const std::string& config_json, DType dtype, const std::string& where);

// A generation_config.json as save_pretrained derives it: the special token ids of config.json.
[[nodiscard]] std::string derive_generation_config(const std::string& config_json);

}  // namespace lamina
