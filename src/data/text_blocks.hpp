// Text files as a sequence of blocks that can be encoded independently, read with bounded memory.
#pragma once

#include "text_cutter.hpp"
#include "text_input.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lamina/data/document_encoder.hpp>
#include <lamina/data/tokenize_files.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

namespace lamina::detail {

struct TextBlock {
  const TextInput* input = nullptr;  // lives as long as its reader
  std::string text;                  // of JSON lines: whole lines
  std::uint64_t offset = 0;          // in the file's text
  std::size_t line = 1;              // of the file, at which it begins (JSON lines)
  bool begins = false;               // first and last block of its file
  bool ends = false;
  std::uint64_t file_bytes = 0;  // of the file, compressed or not, that were read for it
};

// Appends the block's documents.
void encode_block(const TextBlock& block, const DocumentEncoder& encoder, TokenizerWorkspace& workspace,
                  EncodedDocuments& out);

class TextBlockReader {
 public:
  // Opens every file at once, so that a missing one is found before the work. `tokenizer` outlives it.
  TextBlockReader(std::span<const std::filesystem::path> paths, TextFormat format, const Tokenizer& tokenizer,
                  std::size_t block_bytes);

  [[nodiscard]] std::uint64_t total_bytes() const;
  // The next block; empty at the end of the last file.
  [[nodiscard]] std::optional<TextBlock> next();

 private:
  // Where `buffer_` can be cut; its size at the end of the file; empty: read more.
  [[nodiscard]] std::optional<std::size_t> cut(const TextInput& input);

  std::vector<TextInput> inputs_;
  TextCutter cutter_;
  std::size_t block_bytes_;
  std::size_t current_ = 0;
  std::string buffer_;       // read but not given out, of the current file
  std::uint64_t taken_ = 0;  // bytes of the current file that earlier blocks took
  std::uint64_t given_ = 0;  // bytes of text given out of the current file
  std::size_t line_ = 1;
  bool begun_ = false;
};

}  // namespace lamina::detail
