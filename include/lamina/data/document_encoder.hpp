// Documents of text files as token ids: the rules that lamina-tokenize and text given directly to a run share.
//
// .txt     the file is one document. It may be encoded in pieces (text_cutter.hpp).
// .jsonl   every line is one document: an object with the text at "text", or with a conversation at "messages"
//
// A document's ids are what the tokenizer gives for its text with its special tokens (such as a beginning-of-text
// token), then the token that separates documents if asked and not there already. A conversation's ids are what the
// tokenizer's chat template gives, nothing before or after, and only the assistant's turns count as targets. Text that
// is not UTF-8 is a DataError with the offset, except with a tokenizer of pure bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/tokenizer/chat_template.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

namespace lamina {

struct EncodedDocuments {
  std::vector<std::int32_t> ids;
  std::vector<std::size_t> starts;      // first id of each document that begins here
  std::vector<std::uint8_t> loss_mask;  // one an id: 1 where it counts as a target
};

class DocumentEncoder {
 public:
  // `tokenizer` outlives it. `append_eos` needs a tokenizer with a document_eos(), else the first text is a UsageError.
  DocumentEncoder(const Tokenizer& tokenizer, bool append_eos);

  // A piece of a text document. `begins` and `ends` say whether it is the first and the last piece; `offset` is where
  // it lies in the file that messages call `file`.
  void add_text(std::string_view text, bool begins, bool ends, const std::string& file, std::uint64_t offset,
                TokenizerWorkspace& workspace, EncodedDocuments& out) const;
  // One line of a .jsonl file; messages begin with `place` ("FILE:LINE").
  void add_json_line(std::string_view line, const std::string& place, TokenizerWorkspace& workspace,
                     EncodedDocuments& out) const;

  [[nodiscard]] const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  void add_conversation(std::span<const ChatMessage> messages, const std::string& place, TokenizerWorkspace& workspace,
                        EncodedDocuments& out) const;

  const Tokenizer* tokenizer_;
  bool lacks_eos_ = false;
  std::vector<std::int32_t> prefix_;  // what stands before and after a text
  std::vector<std::int32_t> suffix_;
  std::optional<ChatTemplate> chat_;
  std::string no_chat_;  // why there is no chat template
};

// Where the first byte that is not part of well-formed UTF-8 lies; empty if there is none.
[[nodiscard]] std::optional<std::size_t> first_ill_formed(std::string_view text);

}  // namespace lamina
