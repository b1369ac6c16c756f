#include "token_set_checksum.hpp"

#include <lamina/base/hash.hpp>

#include <fmt/format.h>

namespace lamina::detail {

std::string checksum_of(const TokenSetSeal& seal) {
  const std::string facts =
      fmt::format("lamina token set 2\n{}\n{}:{}\n{}:{}\n{} {} {} {}\n", seal.facts.vocab_size,
                  seal.facts.tokenizer_name.size(), seal.facts.tokenizer_name, seal.facts.tokenizer_hash.size(),
                  seal.facts.tokenizer_hash, seal.token_bytes, seal.tokens, seal.block_bytes, seal.has_mask ? 1 : 0);
  Xxh3Stream hash;
  hash.update(facts.data(), facts.size());
  hash.update(seal.document_starts.data(), seal.document_starts.size_bytes());
  hash.update(seal.token_checksums.data(), seal.token_checksums.size_bytes());
  hash.update(seal.mask_checksums.data(), seal.mask_checksums.size_bytes());
  return fmt::format("{:016x}", hash.digest());
}

}  // namespace lamina::detail
