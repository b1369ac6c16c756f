// Counter-based random numbers: a value is a pure function of (key, counter), so any rank can make any part of a
// sequence. Algorithm: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace lamina {

using PhiloxBlock = std::array<std::uint32_t, 4>;

// Four random words for counter (128 bits) and key (64 bits).
[[nodiscard]] PhiloxBlock philox(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high = 0);

// A key for one named stream of one seed: XXH3-64 of the name, seeded.
[[nodiscard]] std::uint64_t stream_key(std::uint64_t seed, std::string_view name);

// Uniform in (0, 1): never 0, never 1.
[[nodiscard]] double uniform_open(std::uint32_t high, std::uint32_t low);

// Element `index` of the standard normal sequence of `key` (Box-Muller in double; two elements share a Philox block).
[[nodiscard]] double normal_at(std::uint64_t key, std::uint64_t index);

// Elements [first, first + out.size()) of the same sequence times `deviation`, rounded to float: twice as fast as one
// by one.
void fill_normal(std::uint64_t key, std::uint64_t first, double deviation, std::span<float> out);

// Position `index` under a pseudo-random permutation of [0, size), a pure function of (key, size, index): a four-round
// Feistel network over the next even power of two, walked until it lands inside. size >= 1, index < size.
[[nodiscard]] std::uint64_t permute_index(std::uint64_t key, std::uint64_t size, std::uint64_t index);

}  // namespace lamina
