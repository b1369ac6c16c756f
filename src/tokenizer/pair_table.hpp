// The merges of a BPE model: (left id, right id) -> rank and merged id, in one flat hash table.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lamina {

struct Merge {
  std::uint32_t rank;
  std::int32_t merged;
};

class PairTable {
 public:
  static constexpr std::uint32_t no_rank = 0xFFFFFFFF;

  // Room for `count` pairs; drops what was there.
  void reserve(std::size_t count) {
    const std::size_t size = std::bit_ceil(count * 2 + 2);
    mask_ = size - 1;
    slots_.assign(size, Slot{-1, -1, {no_rank, -1}});
  }
  // A later merge of the same pair replaces the earlier.
  void insert(std::int32_t left, std::int32_t right, Merge merge) { slots_[place(left, right)] = {left, right, merge}; }
  // rank == no_rank when the pair does not merge.
  [[nodiscard]] Merge find(std::int32_t left, std::int32_t right) const { return slots_[place(left, right)].merge; }

 private:
  struct Slot {
    std::int32_t left, right;
    Merge merge;
  };
  [[nodiscard]] std::size_t place(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key =
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
    const std::uint64_t hash = key * 0x9E3779B97F4A7C15U;
    std::size_t at = static_cast<std::size_t>(hash ^ hash >> 32) & mask_;
    while (slots_[at].left >= 0 && (slots_[at].left != left || slots_[at].right != right)) at = (at + 1) & mask_;
    return at;
  }
  std::vector<Slot> slots_{Slot{-1, -1, {no_rank, -1}}};
  std::size_t mask_ = 0;
};

}  // namespace lamina
