// A decoder-only transformer as Hugging Face's config.json describes it, reduced to what Lamina computes with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lamina {

enum class NormKind { rms, layer };
enum class PositionKind { rope, learned };
enum class ActivationKind { swiglu, gelu_tanh };

enum class RopeScaling { none, linear, llama3 };
struct RopeConfig {
  double theta = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;                                 // linear, llama3
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  std::int64_t original_max_positions = 8192;        // llama3
  bool operator==(const RopeConfig&) const = default;
};

struct ModelConfig {
  std::string family;  // model_type: "llama", "qwen2", "qwen3", "mistral", "gpt2"
  std::int64_t vocab_size = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_positions = 0;
  double norm_eps = 1e-6;
  double init_std = 0.02;  // initializer_range
  bool tied_head = false;
  bool qkv_bias = false;
  bool out_bias = false;  // attention output projection
  bool mlp_bias = false;
  bool qk_norm = false;  // Qwen3: RMSNorm over each head of q and k
  NormKind norm = NormKind::rms;
  PositionKind position = PositionKind::rope;
  ActivationKind activation = ActivationKind::swiglu;
  RopeConfig rope;
  std::vector<std::int64_t> window;            // per layer sliding window in tokens, 0 = none; size = layers
  std::optional<std::int64_t> bos_id, eos_id;  // first of the list when there are several
  std::vector<std::int64_t> eos_ids;
  // The largest dropout probability the file names. Lamina trains without dropout: whoever trains says so when it is
  // not 0.
  double ignored_dropout = 0;
  std::vector<std::string> warnings;  // keys of the file that are likely misspelt, one line each

  [[nodiscard]] std::int64_t q_size() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t kv_size() const { return kv_heads * head_dim; }
  bool operator==(const ModelConfig&) const = default;
};

// Parses a config.json's text; `where` names it in messages. Throws DataError naming the key for anything missing,
// malformed or not implemented.
[[nodiscard]] ModelConfig parse_model_config(const std::string& json_text, const std::string& where);

// Reads FOLDER/config.json.
[[nodiscard]] ModelConfig read_model_config(const std::filesystem::path& folder);

// The ids that end a generated text, as transformers' generate() takes them: those of FOLDER/generation_config.json if
// that file is there, else the config's own.
[[nodiscard]] std::vector<std::int64_t> read_generation_ends(const std::filesystem::path& folder,
                                                             const ModelConfig& config);

}  // namespace lamina
