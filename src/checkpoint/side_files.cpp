#include <algorithm>
#include <array>
#include <functional>
#include <system_error>

#include <lamina/base/file.hpp>
#include <lamina/base/log.hpp>
#include <lamina/base/text.hpp>
#include <lamina/checkpoint/side_files.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t largest_side_file = std::uintmax_t{64} << 20;

constexpr std::array<std::string_view, 15> weight_endings{".safetensors", ".index.json", ".bin",    ".pt",   ".pth",
                                                          ".ckpt",        ".gguf",       ".h5",     ".hdf5", ".msgpack",
                                                          ".npz",         ".onnx",       ".tflite", ".ot",   ".mar"};

constexpr std::array<std::string_view, 12> tokenizer_names{"tokenizer.json",
                                                           "tokenizer_config.json",
                                                           "special_tokens_map.json",
                                                           "added_tokens.json",
                                                           "tokenizer.model",
                                                           "tokenizer.model.v3",
                                                           "spiece.model",
                                                           "sentencepiece.bpe.model",
                                                           "vocab.json",
                                                           "vocab.txt",
                                                           "merges.txt",
                                                           "tekken.json"};

bool is_weights(std::string_view name) {
  return std::ranges::any_of(weight_endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

bool printable(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= 0x20 && c < 0x7F; });
}

// optimizer.json lies beside exported moments, which are weights.
bool is_side_file(std::string_view name) {
  return !name.starts_with('.') && name != "config.json" && name != "optimizer.json" && !is_weights(name);
}

bool can_travel(const fs::path& path) {
  const std::string name = path.filename().string();
  std::string why;
  if (!printable(name)) why = "its name is not printable ASCII";
  if (const std::uintmax_t bytes = fs::file_size(path); bytes > largest_side_file) {
    why = fmt::format("it has {}", human_bytes(bytes));
  }
  if (!why.empty() && printable(name)) {
    log_warn(fmt::format("{} does not travel with checkpoints: {}", path.string(), why));
  } else if (!why.empty()) {
    log_warn(fmt::format("a file of {} does not travel with checkpoints: {}", path.parent_path().string(), why));
  }
  return why.empty();
}

std::vector<SideFile> read_files(const fs::path& folder, const std::function<bool(std::string_view)>& wanted) {
  std::vector<SideFile> files;
  std::error_code error;  // a folder that cannot be listed: reading the model has said more
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!wanted(name) || !entry.is_regular_file(error) || !can_travel(entry.path())) continue;
    files.push_back({name, read_file(entry.path())});
  }
  std::ranges::sort(files, {}, &SideFile::name);
  return files;
}

}  // namespace

bool is_tokenizer_file(std::string_view name) {
  return std::ranges::find(tokenizer_names, name) != tokenizer_names.end() || name.starts_with("chat_template.") ||
         name.ends_with(".tiktoken");
}

std::vector<SideFile> read_side_files(const fs::path& model_folder) { return read_files(model_folder, is_side_file); }

std::vector<SideFile> read_tokenizer_files(const fs::path& folder) { return read_files(folder, is_tokenizer_file); }

}  // namespace lamina
