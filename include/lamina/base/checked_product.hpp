// Products of sizes that users name: told when they cannot be counted, never wrapped.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

namespace lamina {

// Of numbers >= 0; none when the product exceeds 2^63 - 1.
[[nodiscard]] inline std::optional<std::int64_t> checked_product(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

}  // namespace lamina
