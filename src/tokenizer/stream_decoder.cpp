#include "tokenizer_impl.hpp"
#include "utf8.hpp"

#include <lamina/tokenizer/tokenizer.hpp>

namespace lamina {

namespace {

// Takes from `bytes` all that no further byte can change, with U+FFFD for what is ill-formed.
std::string take_certain(std::string& bytes) {
  std::string out;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::size_t good = utf8::valid_prefix(rest);
    out.append(rest.substr(0, good));
    rest.remove_prefix(good);
    if (rest.empty()) break;
    const utf8::Sequence bad = utf8::next_sequence(rest);
    if (bad.kind == utf8::SequenceKind::truncated) break;
    out.append(utf8::replacement);
    rest.remove_prefix(bad.size);
  }
  bytes = std::string(rest);
  return out;
}

}  // namespace

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(&tokenizer), skip_special_tokens_(skip_special_tokens) {}

void StreamDecoder::continue_after(std::span<const std::int32_t> ids) {
  pending_.clear();
  window_.assign(ids.begin(), ids.end());
  given_ = window_.size();
}

std::string StreamDecoder::push(std::int32_t id) {
  return tokenizer_->impl_->decoder.concatenates_bytes() ? push_bytes(id) : push_window(id);
}

std::string StreamDecoder::push_bytes(std::int32_t id) {
  const Tokenizer::Impl::Token* token = tokenizer_->impl_->token(id);
  if (token == nullptr || (skip_special_tokens_ && token->special)) return {};
  pending_ += token->decoded;
  return take_certain(pending_);
}

// Decoders that look at neighbours (the first token loses its space, runs of byte tokens form characters): decode what
// is out and what is out plus new, and give the difference. Bytes are held back until their run ends: as a whole it is
// text or not. Text that ends in U+FFFD may be the first half of a character.
std::string StreamDecoder::push_window(std::int32_t id) {
  const Tokenizer::Impl::Token* token = tokenizer_->impl_->token(id);
  if (token == nullptr || (skip_special_tokens_ && token->special)) return {};
  window_.push_back(id);
  if (tokenizer_->impl_->decoder.waits_for_next(token->decoded)) return {};
  const std::string before = tokenizer_->decode(std::span(window_).first(given_), skip_special_tokens_);
  const std::string now = tokenizer_->decode(window_, skip_special_tokens_);
  if (now.size() <= before.size() || now.ends_with(utf8::replacement)) return {};
  std::string out = now.substr(before.size());
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(given_));
  given_ = window_.size();
  return out;
}

std::string StreamDecoder::finish() {
  std::string out = utf8::replace_invalid(std::exchange(pending_, {}));
  if (given_ < window_.size()) {
    const std::string before = tokenizer_->decode(std::span(window_).first(given_), skip_special_tokens_);
    const std::string now = tokenizer_->decode(window_, skip_special_tokens_);
    if (now.size() > before.size()) out += now.substr(before.size());
  }
  window_.clear();
  given_ = 0;
  return out;
}

}  // namespace lamina
