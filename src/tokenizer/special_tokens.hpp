// What the files beside tokenizer.json say: special tokens, and tokens that tokenizer.json itself lacks.
//
// As transformers reads them: tokenizer_config.json (`added_tokens_decoder`, `eos_token` and its like, extra special
// tokens); where it has no added_tokens_decoder, special_tokens_map.json and added_tokens.json too. config.json is the
// model's: it names the tokenizer's class and an end-of-text id for those that name none.
#pragma once

#include "added_tokens.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lamina {

// A file by its name in messages; empty text: there is none.
struct TokenizerFile {
  std::string name;
  std::string text;
};

struct TokenizerFiles {
  TokenizerFile config{"tokenizer_config.json", {}};
  TokenizerFile special_tokens_map{"special_tokens_map.json", {}};
  TokenizerFile added_tokens{"added_tokens.json", {}};
  TokenizerFile model_config{"config.json", {}};
};

struct TokenizerConfig {
  std::optional<std::string> eos, bos;                  // as the files name them
  std::optional<std::string> default_eos, default_bos;  // what the tokenizer's class in transformers takes instead
  std::vector<std::int64_t> model_eos;                  // eos_token_id of the model's config.json
  std::optional<std::string> chat_template;
  std::vector<DeclaredToken> tokens;  // in the order in which transformers adds them
};

// Throws DataError naming file and place.
[[nodiscard]] TokenizerConfig parse_tokenizer_files(const TokenizerFiles& files);

}  // namespace lamina
