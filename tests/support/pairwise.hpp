// Few cases out of a product of dimensions that still hold every pair of values of any two dimensions together (all
// pairs, as in Czerwonka: "Pairwise testing in the real world", 2006; greedy). Deterministic for a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lamina::test {

// One value, counted from 0, of each dimension.
using ProductCase = std::vector<std::size_t>;

// Whether two values of two different dimensions, the first before the second, may stand in one case.
using AllowedPair = std::function<bool(std::size_t dimension, std::size_t value, std::size_t other, std::size_t of_it)>;

// sizes: values of each dimension, each at least 1. Every pair that is allowed is in some case; no case holds a pair
// that is not. Throws std::logic_error for an allowed pair that no case can hold.
[[nodiscard]] std::vector<ProductCase> pairwise_cases(std::span<const std::size_t> sizes, const AllowedPair& allowed,
                                                      std::uint64_t seed);

// Cases of the whole product, allowed or not.
[[nodiscard]] std::uint64_t product_size(std::span<const std::size_t> sizes);
// Case `index` of the whole product.
[[nodiscard]] ProductCase product_case(std::span<const std::size_t> sizes, std::uint64_t index);
[[nodiscard]] bool is_allowed(const ProductCase& values, const AllowedPair& allowed);

}  // namespace lamina::test
