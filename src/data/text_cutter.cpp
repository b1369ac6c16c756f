#include "text_cutter.hpp"

#include <algorithm>

namespace lamina::detail {

namespace {

constexpr std::size_t context = 96;  // bytes on each side of a cut that are encoded to check it
constexpr int most_candidates = 16;  // cuts tried in one text

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

bool is_candidate(std::string_view text, std::size_t at) {
  return at > 0 && at + 1 < text.size() && text[at] == ' ' && is_letter(text[at - 1]) && is_letter(text[at + 1]);
}

}  // namespace

TextCutter::TextCutter(const Tokenizer& tokenizer) : tokenizer_(&tokenizer), workspace_(tokenizer.make_workspace()) {
  const std::int64_t vocab = tokenizer.vocab_size();
  for (std::int64_t id = 0; id < vocab && possible_; ++id) {
    const std::optional<std::string> token = tokenizer.token_of(static_cast<std::int32_t>(id));
    if (!token) continue;
    for (std::size_t at = token->find(' '); at != std::string::npos; at = token->find(' ', at + 1)) {
      if (is_candidate(*token, at)) possible_ = false;
    }
  }
}

bool TextCutter::stands(std::string_view text, std::size_t at) {
  std::size_t begin = at > context ? at - context : 0;
  while (begin < at && is_continuation(text[begin])) ++begin;
  std::size_t end = std::min(text.size(), at + context);
  while (end < text.size() && is_continuation(text[end])) ++end;
  whole_.clear();
  pieces_.clear();
  tokenizer_->encode_append(text.substr(begin, end - begin), false, workspace_, whole_);
  tokenizer_->encode_append(text.substr(begin, at - begin), false, workspace_, pieces_);
  tokenizer_->encode_append(text.substr(at, end - at), false, workspace_, pieces_);
  return whole_ == pieces_;
}

std::optional<std::size_t> TextCutter::last_cut(std::string_view text) {
  if (!possible_) return std::nullopt;
  int tried = 0;
  for (std::size_t at = text.size(); at > text.size() / 2 && tried < most_candidates; --at) {
    if (!is_candidate(text, at)) continue;
    if (stands(text, at)) return at;
    ++tried;
  }
  return std::nullopt;
}

}  // namespace lamina::detail
