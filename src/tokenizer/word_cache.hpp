// Ids of short words seen lately: two places a hash value, fixed memory, one cache line a word.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace lamina {

class WordCache {
 public:
  static constexpr std::size_t max_key = 24;
  static constexpr std::size_t max_ids = 8;

  struct Key {
    std::array<std::uint64_t, 3> words{};
    std::uint64_t hash;
    std::uint8_t size;
  };
  // `word` has 1 to max_key bytes.
  [[nodiscard]] static Key key_of(std::string_view word) {
    Key key;
    copy(key.words, word);
    key.size = static_cast<std::uint8_t>(word.size());
    std::uint64_t mixed = (key.words[0] ^ word.size()) * 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ mixed >> 32 ^ key.words[1]) * 0xC2B2AE3D27D4EB4FU;
    mixed = (mixed ^ mixed >> 29 ^ key.words[2]) * 0x165667B19E3779F9U;
    key.hash = mixed ^ mixed >> 32;
    return key;
  }
  // Appends the ids of the word and says so, or does nothing.
  [[nodiscard]] bool append(const Key& key, std::vector<std::int32_t>& out) const {
    const std::size_t set = key.hash & (set_count - 1);
    for (std::size_t way = 0; way < 2; ++way) {
      const Entry& entry = entries_[set * 2 + way];
      if (entry.size == key.size && entry.words == key.words) {
        out.insert(out.end(), entry.ids.begin(), entry.ids.begin() + entry.count);
        return true;
      }
    }
    return false;
  }
  void store(const Key& key, std::span<const std::int32_t> ids) {
    if (ids.size() > max_ids) return;
    const std::size_t set = key.hash & (set_count - 1);
    entries_[set * 2 + 1] = entries_[set * 2];
    Entry& entry = entries_[set * 2];
    entry.words = key.words;
    entry.size = key.size;
    entry.count = static_cast<std::uint8_t>(ids.size());
    std::copy(ids.begin(), ids.end(), entry.ids.begin());
  }

 private:
  static constexpr std::size_t set_count = std::size_t{1} << 14;
  struct alignas(64) Entry {
    std::array<std::uint64_t, 3> words{};
    std::array<std::int32_t, max_ids> ids{};
    std::uint8_t size = 0;
    std::uint8_t count = 0;
  };
  static void copy(std::array<std::uint64_t, 3>& words, std::string_view word) {
    std::memcpy(words.data(), word.data(), word.size());
  }
  std::vector<Entry> entries_{set_count * 2};
};

}  // namespace lamina
