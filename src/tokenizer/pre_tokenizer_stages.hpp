// The single stages a PreTokenizer is built from.
#pragma once

#include "pre_tokenizer.hpp"

#include <memory>

namespace lamina {

// Split, Digits, Punctuation, Whitespace, WhitespaceSplit or Metaspace. Refuses (DataError) any other type.
[[nodiscard]] std::unique_ptr<PreTokenizerStage> parse_pre_tokenizer_stage(const JsonNode& section);
// The two effects of ByteLevel on the text: a space in front, and GPT-2's expression.
[[nodiscard]] std::unique_ptr<PreTokenizerStage> make_prefix_space_stage();
[[nodiscard]] std::unique_ptr<PreTokenizerStage> make_gpt2_stage();

}  // namespace lamina
