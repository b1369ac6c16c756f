// A sequence of token ids from one place: a token file, or text that was tokenised when it was opened.
//
// Ids are delivered as int32. A source that knows where documents begin says so; a source may also say of each token
// whether it counts as a target (`loss mask`). Reading is const and safe from several threads. All errors are
// DataErrors that name the file and the byte or token where it breaks. Files are read with pread, not mapped: a disk
// error or a file cut while it is in use is then an error like any other instead of a signal.
//
// Formats (open_token_source tells them apart by content first, then by the name's extension):
//   HDF5 token set   written by lamina-tokenize; token_set.hpp
//   llm.c .bin       256 int32 of header (magic 20240520: uint16 tokens, 20240801: uint32), then tokens
//   nanoGPT .bin     uint16 tokens and nothing else, or uint32 ones where that is said (HeaderlessRules)
//   Megatron         PREFIX.bin with PREFIX.idx (MMIDIDX); either file or PREFIX may be named
//   .txt, .jsonl     tokenised in memory; one document a file, one a line; also .json: a list of documents, or lines.
//                    Also followed by .gz. Text is taken as it is, line ends included
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lamina/data/text_rules.hpp>
#include <lamina/data/token_layout.hpp>

namespace lamina {

class Tokenizer;

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  // The path, for messages.
  [[nodiscard]] const std::string& name() const { return name_; }
  // "HDF5 token set", "llm.c tokens", ...
  [[nodiscard]] const std::string& format() const { return format_; }
  // Number of tokens.
  [[nodiscard]] std::int64_t size() const { return size_; }
  // What the file promises: all ids are below this. Empty: it promises nothing.
  [[nodiscard]] std::optional<std::int64_t> declared_vocab() const { return declared_vocab_; }
  // First token of each document, ascending from 0; empty: not known.
  [[nodiscard]] std::span<const std::int64_t> document_starts() const { return document_starts_; }
  // xxh3 of the tokenizer that made the ids, as text; empty: not known.
  [[nodiscard]] const std::string& tokenizer_hash() const { return tokenizer_hash_; }
  [[nodiscard]] const std::string& tokenizer_name() const { return tokenizer_name_; }

  // Tokens [first, first + out.size()), which must lie inside. Negative ids, and ids that int32 cannot hold, are
  // DataErrors.
  virtual void read(std::int64_t first, std::span<std::int32_t> out) const = 0;
  // Whether tokens may be excluded as targets; read_loss_mask gives 1 for a token that counts, else 0.
  [[nodiscard]] virtual bool has_loss_mask() const { return false; }
  virtual void read_loss_mask(std::int64_t first, std::span<std::uint8_t> out) const;
  // Where a token lies, for messages: "token 5 (byte 1034)".
  [[nodiscard]] virtual std::string place_of(std::int64_t token) const;

 protected:
  void check_range(std::int64_t first, std::size_t count) const;

  std::string name_;
  std::string format_;
  std::int64_t size_ = 0;
  std::optional<std::int64_t> declared_vocab_;
  std::vector<std::int64_t> document_starts_;
  std::string tokenizer_hash_;
  std::string tokenizer_name_;
};

// How files become tokens.
struct SourceOptions {
  // NOLINTNEXTLINE: a tokenizer is all that most need
  SourceOptions(const Tokenizer* text_tokenizer, HeaderlessRules of_headerless = {}, bool end_documents = true,
                TextRules of_text = {})
      : tokenizer(text_tokenizer),
        headerless(std::move(of_headerless)),
        append_eos(end_documents),
        rules(std::move(of_text)) {}

  const Tokenizer* tokenizer;  // for text; may be null for files of tokens; it is not kept
  HeaderlessRules headerless;
  bool append_eos;  // .jsonl: a document of text ends with Tokenizer::document_eos()
  TextRules rules;  // of .jsonl
};

// Whether open_token_source would find a file.
[[nodiscard]] bool has_data(const std::filesystem::path& path);

// Whether `path` is text, for which open_token_source needs a tokenizer.
[[nodiscard]] bool needs_tokenizer(const std::filesystem::path& path);

[[nodiscard]] std::unique_ptr<TokenSource> open_token_source(const std::filesystem::path& path,
                                                             const SourceOptions& options);

// Throws DataError naming file, place, id and, with a tokenizer, the token's text if a token is not below `vocab` (the
// model's). Reads nothing when the file promises a vocabulary that fits.
void check_token_ids(const TokenSource& source, std::int64_t vocab, const Tokenizer* tokenizer = nullptr);
// The same for ids that are no file's; `what` names them.
void check_token_ids(std::span<const std::int32_t> ids, std::int64_t vocab, const Tokenizer& tokenizer,
                     std::string_view what);

}  // namespace lamina
