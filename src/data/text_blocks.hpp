// Text files as a sequence of blocks that can be encoded independently, read with bounded memory.
#pragma once

#include "input_file.hpp"
#include "text_cutter.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lamina/data/tokenize_files.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

namespace lamina::detail {

struct TextBlock {
  std::string file;
  TextFormat format = TextFormat::text;
  std::string text;          // of .jsonl: whole lines
  std::uint64_t offset = 0;  // in the file
  std::size_t line = 1;      // of the file, at which it begins (.jsonl)
  bool begins = false;       // first and last block of its file
  bool ends = false;
};

class TextBlockReader {
 public:
  // Opens every file at once, so that a missing one is found before the work. `tokenizer` outlives it.
  TextBlockReader(std::span<const std::filesystem::path> paths, TextFormat format, const Tokenizer& tokenizer,
                  std::size_t block_bytes);

  [[nodiscard]] std::uint64_t total_bytes() const;
  // The next block; empty at the end of the last file.
  [[nodiscard]] std::optional<TextBlock> next();

 private:
  struct Input {
    InputFile file;
    TextFormat format;
  };
  // Where `buffer_` can be cut; its size at the end of the file; empty: read more.
  [[nodiscard]] std::optional<std::size_t> cut(const Input& input);
  void read_more(const Input& input, std::size_t bytes);

  std::vector<Input> inputs_;
  TextCutter cutter_;
  std::size_t block_bytes_;
  std::size_t current_ = 0;
  std::string buffer_;       // read but not given out, of the current file
  std::uint64_t read_ = 0;   // bytes read of the current file
  std::uint64_t given_ = 0;  // bytes given out of the current file
  std::size_t line_ = 1;
  bool begun_ = false;
};

}  // namespace lamina::detail
