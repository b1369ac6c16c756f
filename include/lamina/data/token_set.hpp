// HDF5 token sets: Lamina's own token files.
//
//   /tokens        uint16 (vocab_size <= 65536) or uint32, contiguous
//   /documents     int64: first token of each document, ascending from 0
//   /loss_mask     uint8 a token, optional: 1 where the token counts as a target
//   attributes     format = "lamina token set", version = 2, vocab_size, tokenizer (name), tokenizer_hash
//   checksums      /tokens_checksums, /loss_mask_checksums: uint64, XXH3-64 of each block of `checksum_block_bytes`
//                  (attribute) with the block's number as its seed; the attribute `checksum` covers them, the documents
//                  and all the facts above
//
// Opening proves the attribute, and each reading the blocks that it touches. Other programs may write such files
// without checksums (version 1 or none); only /tokens and vocab_size are needed to read one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace lamina {

class TokenSource;

struct TokenSetFacts {
  std::int64_t vocab_size = 0;
  std::string tokenizer_name;
  std::string tokenizer_hash;
};

// Writes a token set document by document with memory that does not grow with the tokens (8 bytes a document are kept).
// Tokens wait in temporary files beside the target; `finish` writes the HDF5 file under a temporary name, reads it back
// and compares, and only then renames. Whatever fails, what was at the target stays, and the temporary files are
// removed. Errors are DataErrors.
class TokenSetWriter {
 public:
  TokenSetWriter(const std::filesystem::path& target, TokenSetFacts facts);
  ~TokenSetWriter();
  TokenSetWriter(const TokenSetWriter&) = delete;
  TokenSetWriter& operator=(const TokenSetWriter&) = delete;

  // Adds to the current document. Ids must lie in [0, vocab_size). `mask` says of each token whether it counts as a
  // target; empty: all count. The set gets a loss mask if any token does not.
  void append(std::span<const std::int32_t> ids, std::span<const std::uint8_t> mask = {});
  // What is appended next begins another document. A document without tokens leaves no trace.
  void begin_document();
  // No tokens at all is a DataError.
  void finish();

  [[nodiscard]] std::int64_t tokens() const;
  [[nodiscard]] std::int64_t documents() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Throws DataError if the file is not a token set or is broken.
[[nodiscard]] std::unique_ptr<TokenSource> open_token_set(const std::filesystem::path& path);

}  // namespace lamina
