#include "text_blocks.hpp"

#include <algorithm>
#include <utility>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina::detail {

namespace {

TextFormat format_of(const std::filesystem::path& path, TextFormat asked) {
  if (asked != TextFormat::automatic) return asked;
  if (path.extension() == ".txt") return TextFormat::text;
  if (path.extension() == ".jsonl") return TextFormat::json_lines;
  throw UsageError(one_line(fmt::format("{}: unknown kind of text", path.string()),
                            "its name ends neither in .txt nor in .jsonl",
                            "say what it is with --format text or --format jsonl"));
}

}  // namespace

TextBlockReader::TextBlockReader(std::span<const std::filesystem::path> paths, TextFormat format,
                                 const Tokenizer& tokenizer, std::size_t block_bytes)
    : cutter_(tokenizer), block_bytes_(block_bytes) {
  for (const std::filesystem::path& path : paths) inputs_.push_back({InputFile(path), format_of(path, format)});
}

std::uint64_t TextBlockReader::total_bytes() const {
  std::uint64_t sum = 0;
  for (const Input& input : inputs_) sum += input.file.size();
  return sum;
}

void TextBlockReader::read_more(const Input& input, std::size_t bytes) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, input.file.size() - read_));
  const std::size_t old = buffer_.size();
  buffer_.resize(old + count);
  input.file.read_at(read_, std::as_writable_bytes(std::span(buffer_).subspan(old)));
  read_ += count;
}

std::optional<std::size_t> TextBlockReader::cut(const Input& input) {
  if (read_ == input.file.size()) return buffer_.size();
  if (input.format == TextFormat::text) return cutter_.last_cut(buffer_);
  const std::size_t newline = buffer_.rfind('\n');
  return newline == std::string::npos ? std::nullopt : std::optional(newline + 1);
}

std::optional<TextBlock> TextBlockReader::next() {
  if (current_ == inputs_.size()) return std::nullopt;
  const Input& input = inputs_[current_];
  // Twice as much each time no cut was found, so that a text without cuts is not scanned again and again.
  std::size_t wanted = block_bytes_ > buffer_.size() ? block_bytes_ - buffer_.size() : 0;
  read_more(input, wanted);
  std::optional<std::size_t> end = cut(input);
  while (!end) {
    read_more(input, buffer_.size());
    end = cut(input);
  }
  TextBlock block{input.file.name(), input.format, buffer_.substr(0, *end), given_, line_, !begun_, false};
  buffer_.erase(0, *end);
  given_ += block.text.size();
  begun_ = true;
  if (input.format == TextFormat::json_lines) {
    line_ += static_cast<std::size_t>(std::count(block.text.begin(), block.text.end(), '\n'));
  }
  if (given_ == input.file.size()) {
    block.ends = true;
    ++current_;
    read_ = given_ = 0;
    line_ = 1;
    begun_ = false;
  }
  return block;
}

}  // namespace lamina::detail
