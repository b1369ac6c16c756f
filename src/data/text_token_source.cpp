#include "text_token_source.hpp"

#include "json_line.hpp"

#include <algorithm>
#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/log.hpp>
#include <lamina/data/document_encoder.hpp>

#include <fmt/format.h>

namespace lamina::detail {

namespace {

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

std::unique_ptr<TokenSource> open_text(const std::filesystem::path& path, const Tokenizer& tokenizer) {
  const DocumentEncoder encoder(tokenizer, false);
  TokenizerWorkspace workspace = tokenizer.make_workspace();
  EncodedDocuments documents;
  encoder.add_text(read_file(path), true, true, path.string(), 0, workspace, documents);
  return std::make_unique<MemoryTokenSource>(path, "text", tokenizer.vocab_size(), std::move(documents));
}

std::unique_ptr<TokenSource> open_jsonl(const std::filesystem::path& path, const Tokenizer& tokenizer, bool append_eos,
                                        const TextRules& rules) {
  const DocumentEncoder encoder(tokenizer, append_eos, rules);
  TokenizerWorkspace workspace = tokenizer.make_workspace();
  EncodedDocuments documents;
  const std::string text = read_file(path);
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    encoder.add_json_line(line, fmt::format("{}:{}", path.string(), number), workspace, documents);
  });
  for (const std::string& note : encoder.notes()) log_info(note);
  return std::make_unique<MemoryTokenSource>(path, "JSON lines", tokenizer.vocab_size(), std::move(documents));
}

}  // namespace lamina::detail
