#include "text_blocks.hpp"

#include "json_line.hpp"

#include <algorithm>
#include <utility>

namespace lamina::detail {

void encode_block(const TextBlock& block, const DocumentEncoder& encoder, TokenizerWorkspace& workspace,
                  EncodedDocuments& out) {
  if (block.input->format() == TextFormat::text) {
    encoder.add_text(block.text, block.begins, block.ends, block.input->name(), block.offset, workspace, out);
    return;
  }
  for_each_line(block.text, [&](std::string_view line, std::size_t number) {
    encoder.add_json_line(line, block.input->place_of_line(block.line + number - 1), workspace, out);
  });
}

TextBlockReader::TextBlockReader(std::span<const std::filesystem::path> paths, TextFormat format,
                                 const Tokenizer& tokenizer, std::size_t block_bytes)
    : cutter_(tokenizer), block_bytes_(block_bytes) {
  for (const std::filesystem::path& path : paths) inputs_.emplace_back(path, format);
}

std::uint64_t TextBlockReader::total_bytes() const {
  std::uint64_t sum = 0;
  for (const TextInput& input : inputs_) sum += input.file_bytes();
  return sum;
}

std::optional<std::size_t> TextBlockReader::cut(const TextInput& input) {
  if (input.at_end()) return buffer_.size();
  if (input.format() == TextFormat::text) return cutter_.last_cut(buffer_);
  const std::size_t newline = buffer_.rfind('\n');
  return newline == std::string::npos ? std::nullopt : std::optional(newline + 1);
}

std::optional<TextBlock> TextBlockReader::next() {
  if (current_ == inputs_.size()) return std::nullopt;
  TextInput& input = inputs_[current_];
  if (block_bytes_ > buffer_.size()) input.read(block_bytes_ - buffer_.size(), buffer_);
  std::optional<std::size_t> end = cut(input);
  while (!end) {
    // Twice as much each time no cut was found, so that a text without cuts is not scanned again and again.
    input.read(std::max(buffer_.size(), block_bytes_), buffer_);
    end = cut(input);
  }
  TextBlock block{&input, buffer_.substr(0, *end), given_, line_, !begun_, false, input.taken() - taken_};
  buffer_.erase(0, *end);
  taken_ = input.taken();
  given_ += block.text.size();
  begun_ = true;
  if (input.format() == TextFormat::json_lines) {
    line_ += static_cast<std::size_t>(std::count(block.text.begin(), block.text.end(), '\n'));
  }
  if (input.at_end() && buffer_.empty()) {
    block.ends = true;
    ++current_;
    taken_ = given_ = 0;
    line_ = 1;
    begun_ = false;
  }
  return block;
}

}  // namespace lamina::detail
