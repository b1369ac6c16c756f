#include <cmath>

#include <lamina/base/exact_sum.hpp>

namespace lamina {

namespace {
constexpr int limb_bits = 32;
constexpr std::uint64_t limb_mask = 0xFFFFFFFFu;
constexpr double too_large = 0x1p320;
constexpr double too_small = 0x1p-320;
constexpr std::uint32_t normalise_every = 1u << 28;
}  // namespace

void ExactSum::add(double term) {
  if (!(std::abs(term) < too_large)) {  // also true for NaN
    ++words_[limb_count];
    return;
  }
  if (std::abs(term) < too_small) return;
  int exponent = 0;
  const double fraction = std::frexp(term, &exponent);                        // term = fraction * 2^exponent
  const auto mantissa = static_cast<std::int64_t>(std::ldexp(fraction, 53));  // exact: 53 bits
  const int shift = exponent - 53 - lowest_exponent;                          // bit position of the mantissa's bit 0
  const auto limb = static_cast<std::size_t>(shift / limb_bits);
  const int offset = shift % limb_bits;
  const bool negative = mantissa < 0;
  const auto magnitude = static_cast<std::uint64_t>(negative ? -mantissa : mantissa);
  const std::uint64_t low = (magnitude & limb_mask) << offset, high = (magnitude >> limb_bits) << offset;
  const std::array<std::uint64_t, 3> parts{low & limb_mask, (low >> limb_bits) + (high & limb_mask), high >> limb_bits};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto part = static_cast<std::int64_t>(parts[i]);
    words_[limb + i] += negative ? -part : part;
  }
  if (++pending_ >= normalise_every) normalise();
}

void ExactSum::add(const ExactSum& other) {
  ExactSum copy = other;
  copy.normalise();
  for (std::size_t i = 0; i < word_count; ++i) words_[i] += copy.words_[i];
  normalise();
}

void ExactSum::normalise() {
  for (std::size_t i = 0; i + 1 < limb_count; ++i) {
    const std::int64_t carry = words_[i] >> limb_bits;  // arithmetic shift: floor
    words_[i] -= carry * (std::int64_t{1} << limb_bits);
    words_[i + 1] += carry;
  }
  pending_ = 0;
}

double ExactSum::value() const {
  if (words_[limb_count] != 0) return std::nan("");
  ExactSum copy = *this;
  copy.normalise();
  // A negative number is converted as the negation of its magnitude, so that sums and their negations round alike.
  const bool negative = copy.words_[limb_count - 1] < 0;
  if (negative) {
    for (std::size_t i = 0; i < limb_count; ++i) copy.words_[i] = -copy.words_[i];
    copy.normalise();
  }
  // After normalising, limbs below the top one lie in [0, 2^32): adding from the top down rounds only in the last
  // terms.
  double sum = 0;
  for (std::size_t i = limb_count; i-- > 0;) {
    sum += std::ldexp(static_cast<double>(copy.words_[i]), static_cast<int>(i) * limb_bits + lowest_exponent);
  }
  return negative ? -sum : sum;
}

}  // namespace lamina
