#include "added_tokens.hpp"

#include "bpe_model.hpp"
#include "normalizer.hpp"
#include "unicode_tables.hpp"
#include "utf8.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

namespace lamina {

namespace {

bool ends_with_word(std::string_view text) { return !text.empty() && unicode::is_word(utf8::decode_last(text).code); }
bool starts_with_word(std::string_view text) {
  return !text.empty() && unicode::is_word(utf8::decode_first(text).code);
}

std::size_t spaces_at_end_begin(std::string_view text) {
  while (!text.empty()) {
    const utf8::Decoded last = utf8::decode_last(text);
    if (!unicode::is_white_space(last.code)) break;
    text.remove_suffix(last.size);
  }
  return text.size();
}

std::size_t spaces_at_start(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const utf8::Decoded first = utf8::decode_first(text.substr(at));
    if (!unicode::is_white_space(first.code)) break;
    at += first.size;
  }
  return at;
}

AddedToken parse_token(const JsonNode& node) {
  node.only_keys({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  token.id = static_cast<std::int32_t>(node.at("id").integer(0, std::numeric_limits<std::int32_t>::max()));
  token.content = node.at("content").string();
  if (token.content.empty()) node.at("content").refuse("an empty added token matches everywhere");
  token.matched = token.content;
  token.single_word = node.at("single_word").boolean();
  token.lstrip = node.at("lstrip").boolean();
  token.rstrip = node.at("rstrip").boolean();
  token.normalized = node.at("normalized").boolean();
  token.special = node.at("special").boolean();
  return token;
}

}  // namespace

bool TokenMatcher::add(std::string_view text, std::size_t index) {
  std::uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    std::uint32_t next = node == 0 ? first_[byte] : child(node, byte);
    if (next == 0) {
      next = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
      nodes_[node].next.emplace_back(byte, next);
      if (node == 0) first_[byte] = next;
    }
    node = next;
  }
  if (nodes_[node].index >= 0) return false;
  nodes_[node].index = static_cast<std::int64_t>(index);
  return true;
}

std::uint32_t TokenMatcher::child(std::uint32_t node, unsigned char byte) const {
  for (const auto& [key, next] : nodes_[node].next) {
    if (key == byte) return next;
  }
  return 0;
}

bool TokenMatcher::find(std::string_view text, std::size_t from, Match& match) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    std::uint32_t node = first_[static_cast<unsigned char>(text[begin])];
    if (node == 0) continue;
    bool found = false;
    for (std::size_t at = begin + 1; node != 0; ++at) {
      if (nodes_[node].index >= 0) {
        match = {begin, at, static_cast<std::size_t>(nodes_[node].index)};
        found = true;
      }
      if (at == text.size()) break;
      node = child(node, static_cast<unsigned char>(text[at]));
    }
    if (found) return true;
  }
  return false;
}

AddedTokens::AddedTokens(const JsonNode& section, const BpeModel& model, const Normalizer& normalizer) {
  RegexScratch scratch;
  std::unordered_map<std::string_view, std::size_t> seen;
  // New tokens are numbered from the size of the model's vocabulary, as the library does.
  std::int64_t next_id = static_cast<std::int64_t>(model.token_count());
  tokens_.reserve(section.size());
  for (std::size_t i = 0; i < section.size(); ++i) {
    const JsonNode node = section.at(i);
    AddedToken token = parse_token(node);
    const auto in_model = model.id_of(token.content);
    const std::int64_t given = in_model ? *in_model : next_id++;
    if (given != token.id) {
      node.at("id").refuse(fmt::format("token {} has id {} here but {} by its place in the vocabulary",
                                       in_quotes(token.content), token.id, given),
                           "save the tokenizer again with the tokenizers library");
    }
    if (token.normalized) (void)normalizer.apply(token.matched, scratch);
    tokens_.push_back(std::move(token));
    const AddedToken& kept = tokens_.back();
    if (!seen.emplace(kept.content, i).second)
      node.refuse(fmt::format("token {} appears twice", in_quotes(kept.content)));
    if (kept.matched.empty()) node.refuse(fmt::format("token {} is normalised to nothing", in_quotes(kept.content)));
    if (!(kept.normalized ? after_ : before_).add(kept.matched, i)) {
      node.refuse(fmt::format("token {} matches the same text as another", in_quotes(kept.content)));
    }
  }
}

void AddedTokens::cut(std::string_view text, bool normalized, std::vector<Segment>& segments) const {
  segments.clear();
  const TokenMatcher& matching = matcher(normalized);
  std::size_t done = 0;
  TokenMatcher::Match match{};
  for (std::size_t from = 0; !matching.empty() && matching.find(text, from, match); from = match.end) {
    const AddedToken& token = tokens_[match.index];
    std::size_t begin = match.begin;
    std::size_t end = match.end;
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) continue;
    if (token.lstrip) begin = std::max(spaces_at_end_begin(text.substr(0, begin)), done);
    if (token.rstrip) end += spaces_at_start(text.substr(end));
    if (done < begin) segments.push_back({done, begin, -1});
    segments.push_back({begin, end, static_cast<std::int64_t>(match.index)});
    done = end;
  }
  if (done < text.size()) segments.push_back({done, text.size(), -1});
}

}  // namespace lamina
