// What the checksums of a token set cover: token_set.hpp names the objects.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lamina/data/token_set.hpp>

namespace lamina::detail {

inline constexpr std::uint64_t checksum_block_bytes = std::uint64_t{1} << 15;

// All that a reader takes from a token set but the tokens and the loss mask, which have checksums of their own.
struct TokenSetSeal {
  TokenSetFacts facts;
  std::uint64_t token_bytes = 0;  // of one
  std::int64_t tokens = 0;
  std::uint64_t block_bytes = checksum_block_bytes;
  std::span<const std::int64_t> document_starts;
  std::span<const std::uint64_t> token_checksums;
  bool has_mask = false;
  std::span<const std::uint64_t> mask_checksums;
};

// As the attribute holds it: 16 hexadecimal digits.
[[nodiscard]] std::string checksum_of(const TokenSetSeal& seal);

}  // namespace lamina::detail
