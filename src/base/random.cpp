#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include <lamina/base/check.hpp>
#include <lamina/base/hash.hpp>
#include <lamina/base/random.hpp>

namespace lamina {

PhiloxBlock philox(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high) {
  constexpr std::uint64_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;
  PhiloxBlock c{static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
                static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = multiplier0 * c[0], p1 = multiplier1 * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += weyl0;
    k1 += weyl1;
  }
  return c;
}

std::uint64_t stream_key(std::uint64_t seed, std::string_view name) { return xxh3_64(name.data(), name.size(), seed); }

double uniform_open(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = ((std::uint64_t{high} << 32) | low) >> 12;  // 52 bits
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

namespace {

// Elements 2*pair and 2*pair + 1.
std::array<double, 2> normal_pair(std::uint64_t key, std::uint64_t pair) {
  const PhiloxBlock block = philox(key, pair);
  const double radius = std::sqrt(-2.0 * std::log(uniform_open(block[0], block[1])));
  const double angle = 2.0 * std::numbers::pi * uniform_open(block[2], block[3]);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

double normal_at(std::uint64_t key, std::uint64_t index) { return normal_pair(key, index / 2)[index % 2]; }

void fill_normal(std::uint64_t key, std::uint64_t first, double deviation, std::span<float> out) {
  for (std::size_t i = 0; i < out.size();) {
    const std::uint64_t index = first + i;
    const std::array<double, 2> pair = normal_pair(key, index / 2);
    for (std::uint64_t half = index % 2; half < 2 && i < out.size(); ++half)
      out[i++] = static_cast<float>(deviation * pair[half]);
  }
}

std::uint64_t permute_index(std::uint64_t key, std::uint64_t size, std::uint64_t index) {
  require(size >= 1 && index < size, "permute_index: index inside the range");
  const int half = std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2);
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half, right = index & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const PhiloxBlock f = philox(key, right, round);
      const std::uint64_t mixed = (left ^ ((std::uint64_t{f[1]} << 32) | f[0])) & mask;
      left = right;
      right = mixed;
    }
    index = (left << half) | right;
  } while (index >= size);
  return index;
}

}  // namespace lamina
