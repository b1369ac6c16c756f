// Text files tokenised in memory when they are opened.
#pragma once

#include <filesystem>
#include <memory>

#include <lamina/data/token_source.hpp>

namespace lamina::detail {

// .txt: the ids that the tokenizer gives for the text with its special tokens; nothing is added at the end, so that the
// source is exactly the file. .jsonl and .json: documents one after another; texts are ended by the tokenizer's
// document_eos() if asked.
[[nodiscard]] std::unique_ptr<TokenSource> open_text_source(const std::filesystem::path& path,
                                                            const Tokenizer& tokenizer, bool append_eos,
                                                            const TextRules& rules);

}  // namespace lamina::detail
