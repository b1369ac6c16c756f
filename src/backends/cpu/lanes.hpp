// Eight floats at a time, the same on every processor.
//
// Sums run over fixed lanes (which element goes where follows from the length alone) that are combined in a fixed
// order, so a result depends neither on alignment nor on the vector width of the machine. The last, incomplete group is
// loaded padded and goes through the same instructions as the others: there is no scalar tail with other rounding.
// Elements are rounded exactly as the source says (-ffp-contract=off; fused only by fma8).
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__AVX__) && defined(__FMA__)
#include <immintrin.h>
#endif

namespace lamina::cpu {

using Float8 = float __attribute__((vector_size(32)));
using Int8 = std::int32_t __attribute__((vector_size(32)));
inline constexpr std::int64_t width = 8;

inline Float8 splat(float x) { return Float8{x, x, x, x, x, x, x, x}; }

inline Float8 load8(const float* p) {
  Float8 x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
inline void store8(float* p, Float8 x) { std::memcpy(p, &x, sizeof x); }

// Asks for what a loop over a long array will need soon. Hardware alone leaves a third of the bandwidth unused on
// virtual machines.
inline void prefetch(const float* p) {
  constexpr std::uintptr_t bytes_ahead = 2048;
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(p) + bytes_ahead));
}

// The first `count` < 8 lanes; the others read as `pad` and are not written.
inline Float8 load_part(const float* p, std::int64_t count, float pad = 0.0F) {
  Float8 x = splat(pad);
  for (std::int64_t i = 0; i < count; ++i) x[i] = p[i];
  return x;
}
inline void store_part(float* p, Float8 x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) p[i] = x[i];
}

// a * b + c with one rounding.
inline Float8 fma8(Float8 a, Float8 b, Float8 c) {
#if defined(__AVX__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  Float8 r;
  for (int i = 0; i < width; ++i) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}

// a > b ? a : b, so that a NaN in b stays (and one in a does not).
inline Float8 max8(Float8 a, Float8 b) {
#if defined(__AVX__)
  return _mm256_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}
// a < b ? a : b; NaN as in max8.
inline Float8 min8(Float8 a, Float8 b) {
#if defined(__AVX__)
  return _mm256_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}

inline float sum_of_lanes(Float8 x) { return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7])); }

inline float max_of_lanes(Float8 x) {
  float most = x[0];
  for (int i = 1; i < width; ++i) most = (most > x[i] || most != most) ? most : x[i];
  return most;
}

// How a group is read and written: whole, or the first `count` lanes.
struct Whole {
  static Float8 load(const float* p, float /*pad*/ = 0.0F) { return load8(p); }
  static void store(float* p, Float8 x) { store8(p, x); }
};
struct Part {
  std::int64_t count;
  [[nodiscard]] Float8 load(const float* p, float pad = 0.0F) const { return load_part(p, count, pad); }
  void store(float* p, Float8 x) const { store_part(p, x, count); }
};

// body(io, i) for i = 0, 8, 16, ... < n, where `io` reads and writes the group at offset i.
template <typename Body>
inline void for_groups(std::int64_t n, Body&& body) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) body(Whole{}, i);
  if (i < n) body(Part{n - i}, i);
}

// The sum over groups of term(io, i), a Float8 whose padded lanes are zero.
template <typename Term>
inline Float8 sum_groups(std::int64_t n, Term&& term) {
  Float8 s0{}, s1{}, s2{}, s3{};
  std::int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    s0 += term(Whole{}, i);
    s1 += term(Whole{}, i + width);
    s2 += term(Whole{}, i + 2 * width);
    s3 += term(Whole{}, i + 3 * width);
  }
  if (i + width <= n) s0 += term(Whole{}, i), i += width;
  if (i + width <= n) s1 += term(Whole{}, i), i += width;
  if (i + width <= n) s2 += term(Whole{}, i), i += width;
  if (i < n) s3 += term(Part{n - i}, i);
  return (s0 + s2) + (s1 + s3);
}

template <typename Term>
inline float sum_over(std::int64_t n, Term&& term) {
  return sum_of_lanes(sum_groups(n, term));
}

}  // namespace lamina::cpu
