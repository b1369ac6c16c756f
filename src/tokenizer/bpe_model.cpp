#include "bpe_model.hpp"

#include "byte_alphabet.hpp"
#include "utf8.hpp"

#include <algorithm>

#include <lamina/base/error.hpp>

namespace lamina {

namespace {

constexpr std::size_t short_word = 64;  // symbols: below, scanning for the best pair beats a queue
constexpr std::size_t longest_piece = std::size_t{1} << 31;
constexpr std::uint32_t none = 0xFFFFFFFF;
constexpr std::string_view lower_block = "\xE2\x96\x81";  // U+2581, SentencePiece's space

}  // namespace

std::optional<std::int32_t> BpeModel::id_of(std::string_view token) const {
  const auto found = vocabulary_.find(token);
  if (found == vocabulary_.end()) return std::nullopt;
  return found->second;
}

BpeModel::Symbol BpeModel::symbol_of(std::string_view character) const {
  Symbol symbol;
  if (const auto id = id_of(character)) {
    symbol.id = *id;
  } else if (byte_fallback_) {
    for (const char c : character) symbol.fallback.push_back(fallback_[static_cast<unsigned char>(c)]);
    if (std::find(symbol.fallback.begin(), symbol.fallback.end(), -1) != symbol.fallback.end()) symbol.fallback.clear();
  }
  return symbol;
}

void BpeModel::split_symbols(std::string_view word, std::vector<std::int32_t>& symbols) const {
  symbols.clear();
  std::int32_t pending = -1;  // an unknown token that may grow (fuse_unk)
  const auto put = [&](const Symbol& symbol) {
    if (symbol.id >= 0) {
      if (pending >= 0) symbols.push_back(pending);
      pending = -1;
      symbols.push_back(symbol.id);
    } else if (!symbol.fallback.empty()) {
      // The library leaves a pending unknown token behind the bytes that follow it; so do we.
      symbols.insert(symbols.end(), symbol.fallback.begin(), symbol.fallback.end());
    } else if (unknown_ >= 0) {
      if (pending >= 0 && !fuse_unknown_) symbols.push_back(pending);
      pending = unknown_;
    }
  };
  for (std::size_t at = 0; at < word.size();) {
    const auto byte = static_cast<unsigned char>(word[at]);
    if (byte_level_ || byte < 0x80) {
      put(bytes_[byte]);
      ++at;
      continue;
    }
    const utf8::Decoded decoded = utf8::decode_first(word.substr(at));
    const auto known = characters_.find(decoded.code);
    if (known != characters_.end()) {
      put({known->second, {}});
    } else {
      put(symbol_of(word.substr(at, decoded.size)));
    }
    at += decoded.size;
  }
  if (pending >= 0) symbols.push_back(pending);
}

void BpeModel::merge_short(std::vector<std::int32_t>& symbols, std::vector<std::uint32_t>& ranks) const {
  std::size_t count = symbols.size();
  ranks.resize(count);
  for (std::size_t i = 0; i + 1 < count; ++i) ranks[i] = merges_.find(symbols[i], symbols[i + 1]).rank;
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] == PairTable::no_rank) break;
    symbols[best] = merged_[ranks[best]];
    const auto from = static_cast<std::ptrdiff_t>(best + 1);
    std::copy(symbols.begin() + from + 1, symbols.begin() + static_cast<std::ptrdiff_t>(count), symbols.begin() + from);
    std::copy(ranks.begin() + from, ranks.begin() + static_cast<std::ptrdiff_t>(count) - 1, ranks.begin() + from - 1);
    --count;
    if (best > 0) ranks[best - 1] = merges_.find(symbols[best - 1], symbols[best]).rank;
    if (best + 1 < count) ranks[best] = merges_.find(symbols[best], symbols[best + 1]).rank;
  }
  symbols.resize(count);
}

// The same result with a queue of (rank, place): lowest rank first, then leftmost. Entries that no longer hold are
// skipped.
void BpeModel::merge_long(BpeScratch& s) const {
  const std::size_t count = s.symbols.size();
  s.ranks.assign(count, PairTable::no_rank);
  s.previous.resize(count);
  s.next.resize(count);
  s.queue.clear();
  const auto rate = [&](std::size_t left, bool push) {
    const std::uint32_t right = s.next[left];
    s.ranks[left] = right == none ? PairTable::no_rank : merges_.find(s.symbols[left], s.symbols[right]).rank;
    if (s.ranks[left] == PairTable::no_rank) return;
    s.queue.push_back(static_cast<std::uint64_t>(s.ranks[left]) << 32 | left);
    if (push) std::push_heap(s.queue.begin(), s.queue.end(), std::greater<>());
  };
  for (std::size_t i = 0; i < count; ++i) {
    s.previous[i] = i == 0 ? none : static_cast<std::uint32_t>(i - 1);
    s.next[i] = i + 1 == count ? none : static_cast<std::uint32_t>(i + 1);
  }
  for (std::size_t i = 0; i < count; ++i) rate(i, false);
  std::make_heap(s.queue.begin(), s.queue.end(), std::greater<>());
  while (!s.queue.empty()) {
    std::pop_heap(s.queue.begin(), s.queue.end(), std::greater<>());
    const std::uint64_t entry = s.queue.back();
    s.queue.pop_back();
    const auto left = static_cast<std::uint32_t>(entry);
    const auto rank = static_cast<std::uint32_t>(entry >> 32);
    if (s.ranks[left] != rank) continue;
    const std::uint32_t right = s.next[left];
    s.symbols[left] = merged_[rank];
    s.symbols[right] = -1;
    s.ranks[right] = PairTable::no_rank;
    s.next[left] = s.next[right];
    if (s.next[right] != none) s.previous[s.next[right]] = left;
    rate(left, true);
    if (s.previous[left] != none) rate(s.previous[left], true);
  }
  std::erase(s.symbols, -1);
}

void BpeModel::encode_word(std::string_view word, BpeScratch& scratch, std::vector<std::int32_t>& out) const {
  const bool cached = word.size() <= WordCache::max_key;
  WordCache::Key key;
  if (cached) {
    key = WordCache::key_of(word);
    if (scratch.cache.append(key, out)) return;
  }
  scratch.symbols.clear();
  if (ignore_merges_) {
    const auto whole = whole_words_.find(word);
    if (whole != whole_words_.end()) scratch.symbols.push_back(whole->second);
  }
  if (scratch.symbols.empty()) {
    split_symbols(word, scratch.symbols);
    if (scratch.symbols.size() <= short_word) {
      merge_short(scratch.symbols, scratch.ranks);
    } else {
      merge_long(scratch);
    }
  }
  if (cached) scratch.cache.store(key, scratch.symbols);
  out.insert(out.end(), scratch.symbols.begin(), scratch.symbols.end());
}

void BpeModel::encode(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& out) const {
  if (piece.size() > longest_piece) {
    throw DataError(one_line("cannot tokenize the text", "a piece without a place to cut is larger than 2 GiB",
                             "split the document"));
  }
  while (cut_at_spaces_) {
    // Words start where U+2581 follows another character.
    std::size_t cut = 0;
    while (piece.substr(cut).starts_with(lower_block)) cut += lower_block.size();
    cut = piece.find(lower_block, cut);
    if (cut == std::string_view::npos) break;
    encode_word(piece.substr(0, cut), scratch, out);
    piece.remove_prefix(cut);
  }
  if (!piece.empty()) encode_word(piece, scratch, out);
}

}  // namespace lamina
