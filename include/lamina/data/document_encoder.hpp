// Documents of text files as token ids: the rules that lamina-tokenize and text given directly to a run share.
//
// .txt     the file is one document. It may be encoded in pieces (text_cutter.hpp).
// .jsonl   every line is one document: a text, a conversation, or a prompt and its completion (text_rules.hpp)
//
// A document's ids are what the tokenizer gives for its text with its special tokens (such as a beginning-of-text
// token), then the token that separates documents if asked and not there already. A conversation's ids are what the
// tokenizer's chat template gives, nothing before or after, and only the assistant's turns count as targets. A prompt
// and its completion are one text, of which the completion and what ends the document count. Text that is not UTF-8 is
// a DataError with the offset, except with a tokenizer of pure bytes.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/data/text_rules.hpp>
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
  DocumentEncoder(const Tokenizer& tokenizer, bool append_eos, const TextRules& rules = {});

  // A piece of a text document. `begins` and `ends` say whether it is the first and the last piece; `offset` is where
  // it lies in the file that messages call `file`.
  void add_text(std::string_view text, bool begins, bool ends, const std::string& file, std::uint64_t offset,
                TokenizerWorkspace& workspace, EncodedDocuments& out) const;
  // One line of a .jsonl file; messages begin with `place` ("FILE:LINE").
  void add_json_line(std::string_view line, const std::string& place, TokenizerWorkspace& workspace,
                     EncodedDocuments& out) const;

  [[nodiscard]] const Tokenizer& tokenizer() const { return *tokenizer_; }
  // What the user should hear about the lines so far, each thing once.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  void add_conversation(const nlohmann::ordered_json& conversation, const std::string& place,
                        TokenizerWorkspace& workspace, EncodedDocuments& out) const;
  void add_completion(const std::string& prompt, const std::string& completion, TokenizerWorkspace& workspace,
                      EncodedDocuments& out) const;
  void require_eos(const std::string& file) const;
  void note(const std::string& key, std::string text) const;

  const Tokenizer* tokenizer_;
  bool lacks_eos_ = false;
  std::vector<std::int32_t> prefix_;  // what stands before and after a text
  std::vector<std::int32_t> suffix_;
  std::optional<ChatTemplate> chat_;
  std::string no_chat_;  // why there is no chat template
  TextRules rules_;
  mutable std::mutex notes_mutex_;
  mutable std::map<std::string, std::string> notes_;
};

// Where the first byte that is not part of well-formed UTF-8 lies; empty if there is none.
[[nodiscard]] std::optional<std::size_t> first_ill_formed(std::string_view text);

}  // namespace lamina
