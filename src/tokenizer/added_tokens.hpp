// The "added_tokens" of tokenizer.json and of the files beside it: tokens found in the text before anything else looks
// at it.
#pragma once

#include "json_node.hpp"
#include "regex.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lamina {

class BpeModel;
class Normalizer;

struct AddedToken {
  std::int32_t id = -1;  // -1: not said
  std::string content;
  std::string matched;  // what is looked for: the content, normalised where the token says so
  std::string decoded;  // what decodes: normalised, too, where any file says so
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
  bool was_normalized = false;  // before another file's flags replaced its own
};

// A token that another file than tokenizer.json names.
struct DeclaredToken {
  AddedToken token;
  std::string place;           // of its declaration, for messages
  bool flags_replace = false;  // its flags hold, not those of tokenizer.json
  bool may_be_new = true;      // else it counts only where the vocabulary has it
};

// Finds the longest of a set of strings at the leftmost place. (A trie walked from each place where one can begin.)
class TokenMatcher {
 public:
  struct Match {
    std::size_t begin, end;
    std::size_t index;  // of the string, in the order of `add`
  };
  // False when the same string was added before.
  [[nodiscard]] bool add(std::string_view text, std::size_t index);
  [[nodiscard]] bool empty() const { return nodes_.size() == 1; }
  [[nodiscard]] bool find(std::string_view text, std::size_t from, Match& match) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, std::uint32_t>> next;
    std::int64_t index = -1;
  };
  [[nodiscard]] std::uint32_t child(std::uint32_t node, unsigned char byte) const;

  std::vector<Node> nodes_{1};
  std::array<std::uint32_t, 256> first_{};  // child of the root, 0 when none
};

class AddedTokens {
 public:
  struct Segment {
    std::size_t begin, end;
    std::int64_t token;  // index into tokens(), or -1 for text between tokens
  };

  AddedTokens() = default;
  // The section of tokenizer.json, if there is one, then `declared` as transformers adds them: a new token gets the
  // next id. Refuses (DataError) tokens whose id is not the one the library would give them, doubles, and empty ones.
  AddedTokens(const std::optional<JsonNode>& section, std::span<const DeclaredToken> declared, const BpeModel& model,
              const Normalizer& normalizer);

  [[nodiscard]] const std::vector<AddedToken>& tokens() const { return tokens_; }
  [[nodiscard]] std::optional<std::int32_t> id_of(std::string_view content) const;
  // Cuts `text` at the tokens matched before (`normalized` false) or after normalisation; segments cover the text in
  // order.
  void cut(std::string_view text, bool normalized, std::vector<Segment>& segments) const;
  [[nodiscard]] bool any(bool normalized) const { return !matcher(normalized).empty(); }

 private:
  [[nodiscard]] const TokenMatcher& matcher(bool normalized) const { return normalized ? after_ : before_; }
  void read_section(const JsonNode& section, const BpeModel& model);
  void declare(const DeclaredToken& declared, const BpeModel& model);
  [[nodiscard]] std::int32_t id_for(const AddedToken& token, const BpeModel& model);
  void append(AddedToken token, std::string place);
  void prepare_matching(const Normalizer& normalizer);

  std::vector<AddedToken> tokens_;
  std::vector<std::string> places_;  // of each token, for messages
  std::unordered_map<std::string, std::size_t> by_content_;
  std::int64_t next_id_ = 0;
  TokenMatcher before_, after_;
};

}  // namespace lamina
