// Where in a text its ids stand.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <lamina/tokenizer/tokenizer.hpp>

namespace lamina {

// For each of `ids`, which are those of `text` without added special tokens, the byte behind its last one; ascending.
// The text is followed from special token to special token; between two where the ids do not spell it (a normaliser
// changed it), only the `boundaries` (ascending places in the text) are found, by encoding up to them. The time is
// linear but for such stretches, in which it is the stretch's length times the boundaries inside.
[[nodiscard]] std::vector<std::size_t> token_ends(const Tokenizer& tokenizer, std::string_view text,
                                                  std::span<const std::int32_t> ids,
                                                  std::span<const std::size_t> boundaries,
                                                  TokenizerWorkspace& workspace);

}  // namespace lamina
