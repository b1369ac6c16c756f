// Which tokenizer made some ids, so that data and model can be held to the same one.
#pragma once

#include <string>

#include <lamina/data/token_source.hpp>

namespace lamina {

struct TokenizerIdentity {
  std::string name;  // as it was named
  std::string hash;  // XXH3-64 of its tokenizer.json in hexadecimal; of the built-in one's for "byte"
};

// For "byte", a tokenizer.json or its folder. Throws DataError if the file cannot be read.
[[nodiscard]] TokenizerIdentity identify_tokenizer(const std::string& name_or_path);

// Throws DataError if the source says that another tokenizer made it. A source that does not say passes.
void check_tokenizer(const TokenSource& source, const TokenizerIdentity& expected);

}  // namespace lamina
