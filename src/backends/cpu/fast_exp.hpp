// exp of eight floats by a fixed formula, so that results do not depend on the C library.
//
// Cody-Waite reduction x = n ln2 + r with |r| <= ln2/2, and a polynomial of degree 6 fitted at Chebyshev nodes (own
// fit, relative error 1e-8). Error below 1.5 units in the last place for results from 2^-125 up; smaller results are 0
// (subnormal numbers would slow the products that follow); overflow is +inf, exp(-inf) is 0, NaN stays NaN.
#pragma once

#include "lanes.hpp"

namespace lamina::cpu {

inline Float8 exp8(Float8 x) {
  // Beyond these bounds the result is 0 or +inf. The order of operands keeps NaN.
  x = min8(splat(88.8F), max8(splat(-87.6F), x));
  // Adding 1.5 * 2^23 rounds to an integer, which then is the low part of the bits.
  const Float8 magic = splat(12582912.0F);
  const Float8 shifted = fma8(x, splat(1.44269504F), magic);
  const Float8 n = shifted - magic;
  Float8 r = fma8(n, splat(-0.693359375F), x);  // ln2 in two parts: the first times n is exact
  r = fma8(n, splat(2.12194440e-4F), r);
  Float8 p = splat(0.00139262134662F);
  p = fma8(p, r, splat(0.00836320297157F));
  p = fma8(p, r, splat(0.0416665544377F));
  p = fma8(p, r, splat(0.16666576846F));
  p = fma8(p, r, splat(0.5F));
  p = fma8(p * r, r, r) + splat(1.0F);
  // 2 * 2^(n-1), because 2^128 is no float; n = -126 gives the zero pattern.
  const Int8 bits = (reinterpret_cast<Int8>(shifted) - reinterpret_cast<Int8>(magic) + 126) << 23;
  return (p + p) * reinterpret_cast<Float8>(bits);
}

// 1 / (1 + exp(-x)).
inline Float8 sigmoid8(Float8 x) { return splat(1.0F) / (splat(1.0F) + exp8(-x)); }

}  // namespace lamina::cpu
