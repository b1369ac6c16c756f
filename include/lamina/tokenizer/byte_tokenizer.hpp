// The built-in tokenizer: 256 tokens, id = byte value, and id 256 = "<|endoftext|>".
#pragma once

#include <string>
#include <string_view>

namespace lamina {

inline constexpr std::string_view byte_tokenizer_end_of_text = "<|endoftext|>";
inline constexpr int byte_tokenizer_vocab_size = 257;

// Files that make transformers' AutoTokenizer load the same tokenizer: tokenizer.json and tokenizer_config.json.
[[nodiscard]] std::string make_byte_tokenizer_json();
[[nodiscard]] std::string make_byte_tokenizer_config_json();

}  // namespace lamina
