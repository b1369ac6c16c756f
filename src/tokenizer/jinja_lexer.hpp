// Jinja source to tokens, with trim_blocks and lstrip_blocks as transformers sets them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamina::jinja {

enum class TokenKind { data, output_begin, output_end, block_begin, block_end, name, integer, real, text, sign, end };

struct Token {
  TokenKind kind;
  std::string text;  // of data, names, numbers, texts (escapes resolved) and signs
  int line;
};

// Throws TemplateError with the line.
[[nodiscard]] std::vector<Token> tokenize(std::string_view source);

}  // namespace lamina::jinja
