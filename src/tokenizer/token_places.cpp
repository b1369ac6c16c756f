#include "token_places.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace lamina {

namespace {

class Follower {
 public:
  Follower(const Tokenizer& tokenizer, std::string_view text, std::span<const std::int32_t> ids,
           std::span<const std::size_t> boundaries, TokenizerWorkspace& workspace)
      : tokenizer_(tokenizer),
        text_(text),
        ids_(ids),
        boundaries_(boundaries),
        workspace_(workspace),
        ends_(ids.size()) {
    std::string spelt;
    for (const std::int32_t id : tokenizer.encode("a b", false))
      spelt += tokenizer.decode_bytes(std::span(&id, 1), false);
    concatenates_ = spelt == "a b";
  }

  std::vector<std::size_t> run() {
    std::size_t first = 0, begin = 0, before = 0;  // of the stretch; of the special token before it
    while (first < ids_.size()) {
      std::size_t special = first;
      while (special < ids_.size() && !tokenizer_.is_special(ids_[special])) ++special;
      std::string mark;
      std::size_t end = text_.size();
      if (special < ids_.size()) {
        mark = tokenizer_.token_of(ids_[special]).value_or("");
        end = text_.find(mark, begin);
        if (mark.empty() || end == std::string_view::npos) return by_prefixes();
      }
      if (!spell(first, special, begin, end) && !encode_stretch(first, special, begin, end, before))
        return by_prefixes();
      if (special == ids_.size()) break;
      before = end;
      begin = end + mark.size();
      ends_[special] = begin;
      first = special + 1;
    }
    return std::move(ends_);
  }

 private:
  // The text of a token, as it stands before any decoder that joins tokens.
  [[nodiscard]] std::string spelling(std::int32_t id) const {
    if (concatenates_) return tokenizer_.decode_bytes(std::span(&id, 1), false);
    std::string token = tokenizer_.token_of(id).value_or("");
    unsigned byte = 0;
    const char* digits = token.data() + 3;
    if (token.size() == 6 && token.starts_with("<0x") &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      return std::string(1, static_cast<char>(byte));
    }
    constexpr std::string_view mark = "\xE2\x96\x81";  // SentencePiece's space
    for (std::size_t at = token.find(mark); at != std::string::npos; at = token.find(mark, at))
      token.replace(at, mark.size(), " ");
    return token;
  }

  bool spell(std::size_t first, std::size_t last, std::size_t begin, std::size_t end) {
    // Some tokenizers put a space before the text that follows a special token.
    return (!concatenates_ && spell(first, last, begin, end, true)) || spell(first, last, begin, end, false);
  }

  bool spell(std::size_t first, std::size_t last, std::size_t begin, std::size_t end, bool added_space) {
    for (std::size_t i = first; i < last; ++i) {
      const std::string token = spelling(ids_[i]);
      std::string_view part = token;
      if (i == first && added_space) {
        if (!part.starts_with(' ')) return false;
        part.remove_prefix(1);
      }
      if (!text_.substr(begin, end - begin).starts_with(part)) return false;
      begin += part.size();
      ends_[i] = begin;
    }
    return begin == end;
  }

  // Ids that a prefix of the stretch shares with it, for each boundary inside.
  bool encode_stretch(std::size_t first, std::size_t last, std::size_t begin, std::size_t end, std::size_t before) {
    const std::size_t lead = first > 0 ? 1 : 0;  // with the special token before, so that the stretch begins no text
    const auto stretch = ids_.subspan(first - lead, last - first + lead);
    if (!std::ranges::equal(encoded(before, end), stretch)) return false;
    std::size_t done = first, start = begin;
    // The ids up to `until` lie behind `start` and end at `place`; of those between only that much is known.
    const auto settle = [&](std::size_t until, std::size_t place) {
      for (; done < until; ++done) ends_[done] = done + 1 == until ? place : std::min(start + 1, place);
      start = place;
    };
    for (auto at = std::ranges::upper_bound(boundaries_, begin); at != boundaries_.end() && *at < end; ++at) {
      const auto& prefix = encoded(before, *at);
      const auto shared = static_cast<std::size_t>(std::ranges::mismatch(stretch, prefix).in1 - stretch.begin());
      settle(std::max(done, first - lead + shared), *at);
    }
    settle(last, end);
    return true;
  }

  const std::vector<std::int32_t>& encoded(std::size_t begin, std::size_t end) {
    scratch_.clear();
    tokenizer_.encode_append(text_.substr(begin, end - begin), false, workspace_, scratch_);
    return scratch_;
  }

  // The whole text as one stretch.
  std::vector<std::size_t> by_prefixes() {
    (void)encode_stretch(0, ids_.size(), 0, text_.size(), 0);
    return std::move(ends_);
  }

  const Tokenizer& tokenizer_;
  std::string_view text_;
  std::span<const std::int32_t> ids_;
  std::span<const std::size_t> boundaries_;
  TokenizerWorkspace& workspace_;
  std::vector<std::size_t> ends_;
  std::vector<std::int32_t> scratch_;
  bool concatenates_ = false;
};

}  // namespace

std::vector<std::size_t> token_ends(const Tokenizer& tokenizer, std::string_view text,
                                    std::span<const std::int32_t> ids, std::span<const std::size_t> boundaries,
                                    TokenizerWorkspace& workspace) {
  return Follower(tokenizer, text, ids, boundaries, workspace).run();
}

}  // namespace lamina
