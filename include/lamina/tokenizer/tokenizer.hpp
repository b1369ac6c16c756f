// Text to token ids and back, as the Hugging Face `tokenizers` library does it.
//
// A Tokenizer is what a tokenizer.json describes: byte pair encoding, byte-level (GPT-2, Llama 3, Qwen2 to Qwen3,
// SmolLM2) or with SentencePiece's byte fallback (Llama 2, Mistral). Ids equal those of `tokenizers` 0.23 for every
// text. What is not implemented (other models, dropout, ...) is refused with DataError naming the key; nothing is
// ignored that could change an id. (`truncation` and `padding` are no part of how a text is encoded, as in
// transformers.)
//
// Text is UTF-8. Bytes that are not become U+FFFD, one for each maximal ill-formed part (Python's errors="replace"),
// except with a tokenizer of pure bytes (the built-in one), which encodes any byte string as it is.
//
// All const members may be called from many threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

// Buffers and word cache of one thread. Made by Tokenizer::make_workspace, used with that tokenizer only, by one thread
// at a time.
class TokenizerWorkspace {
 public:
  TokenizerWorkspace(TokenizerWorkspace&&) noexcept;
  TokenizerWorkspace& operator=(TokenizerWorkspace&&) noexcept;
  TokenizerWorkspace(const TokenizerWorkspace&) = delete;
  TokenizerWorkspace& operator=(const TokenizerWorkspace&) = delete;
  ~TokenizerWorkspace();

 private:
  friend class Tokenizer;
  TokenizerWorkspace();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Tokenizer {
 public:
  // Reads a tokenizer.json, or a folder that holds one. From the same folder, where present, as transformers does:
  // tokenizer_config.json (tokens that tokenizer.json lacks, eos_token, bos_token, chat_template),
  // special_tokens_map.json, added_tokens.json, chat_template.jinja; and the model's config.json. Throws DataError
  // naming file and place.
  [[nodiscard]] static Tokenizer load(const std::filesystem::path& path);
  // The same from the files' contents; `name` stands for the file in messages. An empty config is no config.
  [[nodiscard]] static Tokenizer parse(std::string_view tokenizer_json, std::string_view tokenizer_config_json = {},
                                       const std::string& name = "tokenizer.json");
  // The built-in tokenizer (byte_tokenizer.hpp): id = byte value, 256 = "<|endoftext|>".
  [[nodiscard]] static Tokenizer byte();
  // `byte()` for the name "byte", else `load`.
  [[nodiscard]] static Tokenizer named(const std::string& name_or_path);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

  // Ids of `text`. `add_special_tokens` adds what the post-processor's template asks for (such as a beginning-of-text
  // token). The text of an added token inside `text` becomes that token.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text, bool add_special_tokens) const;
  // The same, appended to `out`, with the caller's workspace: the way for bulk work.
  void encode_append(std::string_view text, bool add_special_tokens, TokenizerWorkspace& workspace,
                     std::vector<std::int32_t>& out) const;
  [[nodiscard]] TokenizerWorkspace make_workspace() const;

  // Text of `ids`, valid UTF-8: what does not decode becomes U+FFFD. Ids that name no token give nothing.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const;
  // The bytes of `ids` without replacement: with a tokenizer of pure bytes, exactly what was encoded. Tokenizers that
  // do not concatenate bytes give decode()'s text.
  [[nodiscard]] std::string decode_bytes(std::span<const std::int32_t> ids, bool skip_special_tokens) const;
  // How many bytes of text the id stands for behind other text: what a measure by bytes counts, wherever a text is cut.
  // A special token stands for none.
  [[nodiscard]] std::int64_t text_bytes(std::int32_t id) const;

  // Largest id + 1: the smallest vocabulary a model needs. Ids may leave gaps.
  [[nodiscard]] std::int64_t vocab_size() const;
  [[nodiscard]] std::optional<std::int32_t> id_of(std::string_view token) const;
  // The token as the vocabulary writes it; nothing for an id that names none.
  [[nodiscard]] std::optional<std::string> token_of(std::int32_t id) const;
  [[nodiscard]] bool is_special(std::int32_t id) const;
  // Any byte string survives encode and decode_bytes.
  [[nodiscard]] bool pure_bytes() const;

  // From tokenizer_config.json, else special_tokens_map.json, else what the tokenizer's class in transformers takes.
  [[nodiscard]] std::optional<std::int32_t> eos() const;
  // The token that separates documents: eos(), else the first eos_token_id of the model's config.json.
  [[nodiscard]] std::optional<std::int32_t> document_eos() const;
  [[nodiscard]] std::optional<std::int32_t> bos() const;
  // The template's text, unread; chat_template.hpp runs it.
  [[nodiscard]] const std::optional<std::string>& chat_template() const;

 private:
  friend class StreamDecoder;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Decodes ids one by one for a terminal: gives out only text that later ids cannot change, always complete UTF-8.
class StreamDecoder {
 public:
  // `tokenizer` outlives the decoder.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens);
  // Starts anew behind `ids`, whose text is out already: what follows is then the same as when all is decoded at once
  // (tokenizers of SentencePiece's kind drop the space before the first token only).
  void continue_after(std::span<const std::int32_t> ids);
  // The text that became certain with `id`; often empty.
  [[nodiscard]] std::string push(std::int32_t id);
  // The rest; the decoder is then as new.
  [[nodiscard]] std::string finish();

 private:
  [[nodiscard]] std::string push_bytes(std::int32_t id);
  [[nodiscard]] std::string push_window(std::int32_t id);

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::string pending_;               // bytes of an unfinished character
  std::vector<std::int32_t> window_;  // ids whose text may still change, behind those that give it context
  std::size_t given_ = 0;             // ids at the window's start whose text is out
};

}  // namespace lamina
