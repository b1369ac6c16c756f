// The files of a Hugging Face folder that travel with checkpoints and exports: all but the weights.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

// A file that travels with the checkpoint, in its folder model/.
struct SideFile {
  std::string name;  // plain file name
  std::string content;
};

// Reads every file of the folder itself, in the order of their names, except weights of any kind and their indices,
// config.json (Manifest::model_config_json) and hidden files. Links are followed. A file that cannot travel (beyond
// 64 MiB, or with a name that is not printable ASCII) is named in the log. Throws DataError when one cannot be read.
[[nodiscard]] std::vector<SideFile> read_side_files(const std::filesystem::path& model_folder);

// The same for the files that make a tokenizer only.
[[nodiscard]] std::vector<SideFile> read_tokenizer_files(const std::filesystem::path& folder);

// Whether a file of this name is part of a tokenizer: its vocabulary, its settings, its chat template.
[[nodiscard]] bool is_tokenizer_file(std::string_view name);

}  // namespace lamina
