// A sum of doubles whose result does not depend on the order of its terms.
//
// Floating-point addition is not associative, so a loss or a norm summed over ranks would depend on how many there are.
// Here each term is added exactly to a wide fixed-point number (Kulisch's long accumulator): every limb holds 32 bits
// of the number in a 64-bit integer, so that limbs of many accumulators can be added by an integer all-reduce, and only
// the final conversion rounds. Terms may be any finite doubles with magnitude in [2^-320, 2^320); smaller ones count as
// zero, larger ones and NaN mark the sum as not finite.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lamina {

class ExactSum {
 public:
  static constexpr int lowest_exponent = -384;   // weight of bit 0 of limb 0
  static constexpr std::size_t limb_count = 24;  // 24 x 32 bits: up to 2^384
  // The limbs, then one counter of terms that were not finite.
  static constexpr std::size_t word_count = limb_count + 1;

  void add(double term);
  void add(const ExactSum& other);

  // The sum rounded to double (error below one unit in the last place); NaN if any term was not finite.
  [[nodiscard]] double value() const;

  // Raw words for an integer SUM all-reduce. `normalise` keeps the limbs small: call it before sharing the words; then
  // at least 2^30 accumulators can be added without overflow.
  void normalise();
  [[nodiscard]] std::span<std::int64_t, word_count> words() { return words_; }
  [[nodiscard]] std::span<const std::int64_t, word_count> words() const { return words_; }

 private:
  std::array<std::int64_t, word_count> words_{};
  std::uint32_t pending_ = 0;  // terms since the last normalise
};

}  // namespace lamina
