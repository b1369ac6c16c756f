// The "model" section of tokenizer.json: byte pair encoding of one piece of text.
// (Sennrich, Haddow, Birch: "Neural machine translation of rare words with subword units", ACL 2016.)
#pragma once

#include "json_node.hpp"
#include "pair_table.hpp"
#include "word_cache.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lamina {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using TokenMap = std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>>;

// Buffers and word cache of one thread for one BpeModel.
struct BpeScratch {
  WordCache cache;
  std::vector<std::int32_t> symbols;
  std::vector<std::uint32_t> ranks;
  std::vector<std::uint32_t> previous, next;
  std::vector<std::uint64_t> queue;
};

class BpeModel {
 public:
  // `byte_level`: pieces are bytes, and the vocabulary writes them in GPT-2's byte alphabet. Refuses (DataError) other
  // models and what is not implemented, ids that are no vocabulary, and merges that name unknown tokens.
  BpeModel(const JsonNode& section, bool byte_level);

  // Appends the ids of one piece. Safe to call from many threads with different scratch.
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& out) const;

  [[nodiscard]] std::optional<std::int32_t> id_of(std::string_view token) const;
  [[nodiscard]] const TokenMap& vocabulary() const { return vocabulary_; }
  [[nodiscard]] std::size_t token_count() const { return vocabulary_.size(); }
  [[nodiscard]] std::int32_t largest_id() const { return largest_id_; }
  // No merges, and each byte has a token of its own: ids spell any byte string.
  [[nodiscard]] bool spells_bytes() const { return merge_count_ == 0 && all_bytes_ && byte_level_; }

 private:
  // What one character (or byte) becomes before merging.
  struct Symbol {
    std::int32_t id = -1;                // its token, when there is one
    std::vector<std::int32_t> fallback;  // else the tokens of its bytes, when there are
  };

  void parse_vocabulary(const JsonNode& section);
  void parse_merges(const JsonNode& section);
  void parse_unknown(const JsonNode& section);
  void prepare_bytes();
  void prepare_characters();
  [[nodiscard]] bool merges_cross_spaces() const;
  [[nodiscard]] Symbol symbol_of(std::string_view character) const;

  void encode_word(std::string_view word, BpeScratch& scratch, std::vector<std::int32_t>& out) const;
  void split_symbols(std::string_view word, std::vector<std::int32_t>& symbols) const;
  void merge_short(std::vector<std::int32_t>& symbols, std::vector<std::uint32_t>& ranks) const;
  void merge_long(BpeScratch& scratch) const;

  bool byte_level_;
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
  bool all_bytes_ = false;
  bool cut_at_spaces_ = false;  // no merge crosses from another character to U+2581: words can be merged one by one
  std::int32_t unknown_ = -1;
  std::int32_t largest_id_ = -1;
  std::size_t merge_count_ = 0;
  TokenMap vocabulary_;
  TokenMap whole_words_;  // ignore_merges: spelled as pieces are
  PairTable merges_;
  std::vector<std::int32_t> merged_;  // by rank
  std::array<Symbol, 256> bytes_;     // byte level: of each byte; else: of each ASCII character
  std::unordered_map<char32_t, std::int32_t> characters_;
  std::array<std::int32_t, 256> fallback_{};  // token of "<0xNN>", -1 when there is none
};

}  // namespace lamina
