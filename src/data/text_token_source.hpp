// Text files tokenised in memory when they are opened.
#pragma once

#include <filesystem>
#include <memory>

#include <lamina/data/text_rules.hpp>
#include <lamina/data/token_source.hpp>

namespace lamina::detail {

// The ids that the tokenizer gives for the text with its special tokens; nothing is added at the end, so that the
// source is exactly the file.
[[nodiscard]] std::unique_ptr<TokenSource> open_text(const std::filesystem::path& path, const Tokenizer& tokenizer);
// Documents one after another; texts are ended by the tokenizer's document_eos() if asked.
[[nodiscard]] std::unique_ptr<TokenSource> open_jsonl(const std::filesystem::path& path, const Tokenizer& tokenizer,
                                                      bool append_eos, const TextRules& rules);

}  // namespace lamina::detail
