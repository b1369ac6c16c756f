// The "added_tokens" of tokenizer.json: tokens found in the text before anything else looks at it.
#pragma once

#include "json_node.hpp"
#include "regex.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

class BpeModel;
class Normalizer;

struct AddedToken {
  std::int32_t id;
  std::string content;
  std::string matched;  // what is looked for and what decodes: the content, normalised where the token says so
  bool single_word, lstrip, rstrip, normalized, special;
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
  // Refuses (DataError) tokens whose id is not the one the library would give them, doubles, and empty ones.
  AddedTokens(const JsonNode& section, const BpeModel& model, const Normalizer& normalizer);

  [[nodiscard]] const std::vector<AddedToken>& tokens() const { return tokens_; }
  // Cuts `text` at the tokens matched before (`normalized` false) or after normalisation; segments cover the text in
  // order.
  void cut(std::string_view text, bool normalized, std::vector<Segment>& segments) const;
  [[nodiscard]] bool any(bool normalized) const { return !matcher(normalized).empty(); }

 private:
  [[nodiscard]] const TokenMatcher& matcher(bool normalized) const { return normalized ? after_ : before_; }

  std::vector<AddedToken> tokens_;
  TokenMatcher before_, after_;
};

}  // namespace lamina
