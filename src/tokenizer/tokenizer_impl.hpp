// What a Tokenizer and its workspaces hold.
#pragma once

#include "added_tokens.hpp"
#include "bpe_model.hpp"
#include "decoder.hpp"
#include "normalizer.hpp"
#include "post_processor.hpp"
#include "pre_tokenizer.hpp"
#include "special_tokens.hpp"

#include <mutex>

#include <lamina/tokenizer/tokenizer.hpp>

namespace lamina {

struct TokenizerWorkspace::Impl {
  PreTokenizerScratch pre_tokenizer;
  BpeScratch bpe;
  std::string valid;       // the input with U+FFFD for what is not UTF-8
  std::string normalized;  // the segment at hand
  std::vector<AddedTokens::Segment> outer, inner;
  std::vector<std::int32_t> ids;
};

struct Tokenizer::Impl {
  struct Token {
    std::string decoded;  // the bytes (decoders that concatenate) or the string handed to the decoder
    bool exists = false;
    bool special = false;  // skipped when special tokens are
  };

  Impl(const JsonNode& root, const TokenizerConfig& config, const std::string& name);

  void encode(std::string_view text, bool add_special_tokens, TokenizerWorkspace::Impl& workspace,
              std::vector<std::int32_t>& out) const;
  [[nodiscard]] const Token* token(std::int32_t id) const;

  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  BpeModel model;
  AddedTokens added;
  Decoder decoder;
  PostProcessor post_processor;
  std::vector<Token> tokens;  // by id
  std::vector<std::string> names;
  std::optional<std::int32_t> eos, bos, document_eos;
  std::optional<std::string> chat_template;
  bool pure_bytes = false;

  // Workspaces for callers that bring none.
  mutable std::mutex pool_mutex;
  mutable std::vector<TokenizerWorkspace> pool;

  [[nodiscard]] std::optional<std::int32_t> id_of(std::string_view token) const;

 private:
  void resolve_ends(const TokenizerConfig& config, const std::string& name);
  void list_tokens();
  void encode_text(std::string_view text, TokenizerWorkspace::Impl& workspace, std::vector<std::int32_t>& out) const;
  void encode_segment(std::string_view text, bool at_start, TokenizerWorkspace::Impl& workspace,
                      std::vector<std::int32_t>& out) const;
};

}  // namespace lamina
