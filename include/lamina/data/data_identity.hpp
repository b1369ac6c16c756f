// What training data are, whatever their files are called: to see on resume whether they are still the same.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <lamina/data/token_mixture.hpp>

namespace lamina {

// Sources of at most so many tokens are read whole. Of larger ones so many are read, in blocks spread evenly from the
// first token to the last.
inline constexpr std::int64_t most_identified_tokens = std::int64_t{1} << 24;

// One entry a source: the number of tokens, a checksum of ids, labels that do not count and beginnings of documents,
// and its share of the mixture. Equal for equal ids and shares, wherever they come from. Throws DataError.
[[nodiscard]] std::string identify_data(const TokenMixture& mixture);
// The same for sources without a mixture.
[[nodiscard]] std::string identify_data(std::span<const std::unique_ptr<TokenSource>> sources);

}  // namespace lamina
