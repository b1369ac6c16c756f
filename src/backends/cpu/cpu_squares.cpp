// The exact sum of squares of a gradient: the norm must not depend on how tensors are cut into units, shards and ranks.
//
// A float is m * 2^e with a 24-bit integer m, so its square is the 48-bit integer m*m times 2^(2e). Integers of one
// exponent are summed in 64 bits, exactly and in any order; every so often the bins move to the wide accumulator.
#include "cpu_ops.hpp"
#include "parallel.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <mutex>

namespace lamina::cpu {
namespace {

constexpr std::size_t exponents = 256;
constexpr int not_finite = 255;  // exponent field of infinity and NaN
constexpr int bias = 127 + 23;   // value = mantissa * 2^(field - bias)
// Neighbours usually share an exponent: several banks keep an addition from waiting for the one before.
constexpr std::size_t banks = 4;
// Squares are below 2^48: 2^16 of them fit a bin.
constexpr std::size_t most_in_a_bin = std::size_t{1} << 16;

using Bins = std::array<std::array<std::uint64_t, exponents>, banks>;

void count(Bins& bins, std::size_t bank, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t field = (bits >> 23) & 0xFFu;
  const std::uint64_t mantissa = (bits & 0x7FFFFFu) | (field != 0 ? 0x800000u : 0u);
  bins[bank][field] += mantissa * mantissa;
}

// Infinity has mantissa 2^23 here and NaN more, so bin 255 is not empty if either occurred.
void empty(Bins& bins, ExactSum& sum) {
  for (auto& bank : bins) {
    for (std::size_t field = 0; field < exponents; ++field) {
      const std::uint64_t squares = bank[field];
      if (squares == 0) continue;
      bank[field] = 0;
      if (field == not_finite) {
        sum.add(INFINITY);
        continue;
      }
      const int exponent = 2 * (static_cast<int>(std::max<std::size_t>(field, 1)) - bias);
      sum.add(std::ldexp(static_cast<double>(squares >> 32), exponent + 32));
      sum.add(std::ldexp(static_cast<double>(squares & 0xFFFFFFFFu), exponent));
    }
  }
}

void add_squares(ExactSum& sum, const float* x, std::size_t size) {
  Bins bins{};
  for (std::size_t begin = 0; begin < size; begin += banks * most_in_a_bin) {
    const std::size_t end = std::min(size, begin + banks * most_in_a_bin);
    std::size_t i = begin;
    for (; i + banks <= end; i += banks) {
      for (std::size_t bank = 0; bank < banks; ++bank) count(bins, bank, x[i + bank]);
    }
    for (std::size_t bank = 0; i < end; ++i, ++bank) count(bins, bank, x[i]);
    empty(bins, sum);
  }
}

}  // namespace

void CpuOps::do_add_sum_of_squares(ExactSum& sum, std::span<const float> x) {
  constexpr std::int64_t grain = 4096;
  const auto size = static_cast<std::int64_t>(x.size());
  std::mutex joining;
  parallel_ranges(threads_, size, size, grain, [&](std::int64_t first, std::int64_t last) {
    ExactSum part;
    add_squares(part, x.data() + first, static_cast<std::size_t>(last - first));
    const std::lock_guard lock(joining);
    sum.add(part);
  });
}

}  // namespace lamina::cpu
