#include "added_tokens.hpp"

#include "bpe_model.hpp"
#include "normalizer.hpp"
#include "unicode_tables.hpp"
#include "utf8.hpp"

#include <algorithm>
#include <limits>

#include <lamina/base/error.hpp>

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

AddedTokens::AddedTokens(const std::optional<JsonNode>& section, std::span<const DeclaredToken> declared,
                         const BpeModel& model, const Normalizer& normalizer)
    : next_id_(static_cast<std::int64_t>(model.token_count())) {
  if (section) read_section(*section, model);
  for (const DeclaredToken& token : declared) declare(token, model);
  prepare_matching(normalizer);
}

// New tokens are numbered from the size of the model's vocabulary, as the library does.
std::int32_t AddedTokens::id_for(const AddedToken& token, const BpeModel& model) {
  const auto in_model = model.id_of(token.content);
  return in_model ? *in_model : static_cast<std::int32_t>(next_id_++);
}

void AddedTokens::append(AddedToken token, std::string place) {
  by_content_.emplace(token.content, tokens_.size());
  tokens_.push_back(std::move(token));
  places_.push_back(std::move(place));
}

void AddedTokens::read_section(const JsonNode& section, const BpeModel& model) {
  tokens_.reserve(section.size());
  for (std::size_t i = 0; i < section.size(); ++i) {
    const JsonNode node = section.at(i);
    AddedToken token = parse_token(node);
    if (by_content_.contains(token.content))
      node.refuse(fmt::format("token {} appears twice", in_quotes(token.content)));
    if (const std::int32_t given = id_for(token, model); given != token.id) {
      node.at("id").refuse(fmt::format("token {} has id {} here but {} by its place in the vocabulary",
                                       in_quotes(token.content), token.id, given),
                           "save the tokenizer again with the tokenizers library");
    }
    append(std::move(token), node.described());
  }
}

void AddedTokens::declare(const DeclaredToken& declared, const BpeModel& model) {
  if (declared.token.content.empty()) return;
  const auto found = by_content_.find(declared.token.content);
  AddedToken token = declared.token;
  if (found == by_content_.end() && !declared.may_be_new && !model.id_of(token.content)) return;
  token.id = found == by_content_.end() ? id_for(token, model) : tokens_[found->second].id;
  if (declared.token.id >= 0 && declared.token.id != token.id) {
    throw DataError(one_line(fmt::format("cannot use {}", declared.place),
                             fmt::format("token {} has id {} there but {} by its place in the vocabulary",
                                         in_quotes(token.content), declared.token.id, token.id),
                             "save the tokenizer again with transformers"));
  }
  if (found == by_content_.end()) return append(std::move(token), declared.place);
  if (!declared.flags_replace) return;
  AddedToken& known = tokens_[found->second];
  known.single_word = token.single_word;
  known.lstrip = token.lstrip;
  known.rstrip = token.rstrip;
  known.was_normalized = known.was_normalized || known.normalized;
  known.normalized = token.normalized;
  known.special = known.special || token.special;
}

void AddedTokens::prepare_matching(const Normalizer& normalizer) {
  RegexScratch scratch;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    AddedToken& token = tokens_[i];
    token.decoded = token.content;
    if (token.normalized || token.was_normalized) (void)normalizer.apply(token.decoded, scratch);
    token.matched = token.normalized ? token.decoded : token.content;
    const auto refuse = [&](std::string_view why) {
      throw DataError(one_line(fmt::format("cannot use {}", places_[i]),
                               fmt::format("token {} {}", in_quotes(token.content), why)));
    };
    if (token.matched.empty()) refuse("is normalised to nothing");
    if (!(token.normalized ? after_ : before_).add(token.matched, i)) refuse("matches the same text as another");
  }
}

std::optional<std::int32_t> AddedTokens::id_of(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? std::nullopt : std::optional(tokens_[found->second].id);
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
