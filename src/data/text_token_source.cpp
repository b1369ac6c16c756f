#include "text_token_source.hpp"

#include "file_kind.hpp"
#include "text_blocks.hpp"

#include <algorithm>
#include <utility>

#include <lamina/base/log.hpp>
#include <lamina/data/document_encoder.hpp>

namespace lamina::detail {

namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 22;

class MemoryTokenSource : public TokenSource {
 public:
  MemoryTokenSource(const std::filesystem::path& path, std::string format, std::int64_t vocab,
                    EncodedDocuments documents)
      : ids_(std::move(documents.ids)), mask_(std::move(documents.loss_mask)) {
    name_ = path.string();
    format_ = std::move(format);
    size_ = static_cast<std::int64_t>(ids_.size());
    declared_vocab_ = vocab;
    for (const std::size_t start : documents.starts) {
      // A document without tokens leaves no trace.
      if (start == ids_.size()) continue;
      if (!document_starts_.empty() && document_starts_.back() == static_cast<std::int64_t>(start)) continue;
      document_starts_.push_back(static_cast<std::int64_t>(start));
    }
    if (std::find(mask_.begin(), mask_.end(), 0) == mask_.end()) mask_ = {};
  }

  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    check_range(first, out.size());
    std::copy_n(ids_.begin() + first, out.size(), out.begin());
  }
  [[nodiscard]] bool has_loss_mask() const override { return !mask_.empty(); }
  void read_loss_mask(std::int64_t first, std::span<std::uint8_t> out) const override {
    if (mask_.empty()) return TokenSource::read_loss_mask(first, out);
    check_range(first, out.size());
    std::copy_n(mask_.begin() + first, out.size(), out.begin());
  }

 private:
  std::vector<std::int32_t> ids_;
  std::vector<std::uint8_t> mask_;
};

}  // namespace

std::unique_ptr<TokenSource> open_text_source(const std::filesystem::path& path, const Tokenizer& tokenizer,
                                              bool append_eos, const TextRules& rules) {
  TextBlockReader reader(std::span(&path, 1), TextFormat::automatic, tokenizer, block_bytes);
  const bool text = text_extension(path) == ".txt";
  const DocumentEncoder encoder(tokenizer, !text && append_eos, text ? TextRules() : rules);
  TokenizerWorkspace workspace = tokenizer.make_workspace();
  EncodedDocuments documents;
  while (const std::optional<TextBlock> block = reader.next()) encode_block(*block, encoder, workspace, documents);
  for (const std::string& note : encoder.notes()) log_info(note);
  return std::make_unique<MemoryTokenSource>(path, text ? "text" : "JSON lines", tokenizer.vocab_size(),
                                             std::move(documents));
}

}  // namespace lamina::detail
