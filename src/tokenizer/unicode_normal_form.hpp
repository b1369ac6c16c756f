// Unicode normal forms (UAX #15) through utf8proc, for the repertoire the `tokenizers` library normalises.
#pragma once

#include <string>

namespace lamina::unicode {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// Rewrites valid UTF-8 `text`. Characters assigned after the library's Unicode version stay as they are and take no
// part.
void normalize(std::string& text, NormalForm form);

}  // namespace lamina::unicode
