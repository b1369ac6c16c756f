#include "support/pairwise.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

namespace lamina::test {

namespace {

constexpr std::size_t unset = static_cast<std::size_t>(-1);
constexpr int candidates = 12;  // made for each case, of which the best is taken
constexpr int patience = 200;   // tries before a pair counts as impossible

class Generator {
 public:
  Generator(std::span<const std::size_t> sizes, const AllowedPair& allowed, std::uint64_t seed)
      : sizes_(sizes), allowed_(allowed), random_(seed), first_{0} {
    for (const std::size_t size : sizes_) first_.push_back(first_.back() + size);
    open_.assign(first_.back(), std::vector<bool>(first_.back(), false));
    for (std::size_t a = 0; a < sizes_.size(); ++a) {
      for (std::size_t b = a + 1; b < sizes_.size(); ++b) open_pairs_of(a, b);
    }
  }

  std::vector<ProductCase> cases() {
    std::vector<ProductCase> all;
    while (!pairs_.empty()) {
      all.push_back(next_case());
      for (std::size_t a = 0; a < sizes_.size(); ++a) {
        for (std::size_t b = a + 1; b < sizes_.size(); ++b) mark(a, all.back()[a], b, all.back()[b], false);
      }
      std::erase_if(pairs_, [this](const Pair& pair) { return !is_open(pair.a, pair.u, pair.b, pair.v); });
    }
    return all;
  }

 private:
  struct Pair {
    std::size_t a, u, b, v;  // value u of dimension a with value v of dimension b
  };

  void open_pairs_of(std::size_t a, std::size_t b) {
    for (std::size_t u = 0; u < sizes_[a]; ++u) {
      for (std::size_t v = 0; v < sizes_[b]; ++v) {
        if (!allowed_(a, u, b, v)) continue;
        mark(a, u, b, v, true);
        pairs_.push_back({a, u, b, v});
      }
    }
  }

  void mark(std::size_t a, std::size_t u, std::size_t b, std::size_t v, bool open) {
    open_[first_[a] + u][first_[b] + v] = open_[first_[b] + v][first_[a] + u] = open;
  }
  [[nodiscard]] bool is_open(std::size_t a, std::size_t u, std::size_t b, std::size_t v) const {
    return open_[first_[a] + u][first_[b] + v];
  }

  [[nodiscard]] bool fits(const ProductCase& values, std::size_t dimension, std::size_t value) const {
    for (std::size_t other = 0; other < values.size(); ++other) {
      if (values[other] == unset || other == dimension) continue;
      const bool good = other < dimension ? allowed_(other, values[other], dimension, value)
                                          : allowed_(dimension, value, other, values[other]);
      if (!good) return false;
    }
    return true;
  }

  // Open pairs of the value with those chosen already.
  [[nodiscard]] std::size_t gain(const ProductCase& values, std::size_t dimension, std::size_t value) const {
    std::size_t sum = 0;
    for (std::size_t other = 0; other < values.size(); ++other) {
      if (values[other] != unset && other != dimension && is_open(dimension, value, other, values[other])) ++sum;
    }
    return sum;
  }

  // The value that closes most pairs; among equals one by chance.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::size_t>> best_value(const ProductCase& values,
                                                                              std::size_t dimension) {
    std::optional<std::pair<std::size_t, std::size_t>> best;  // value and gain
    const std::size_t start = random_() % sizes_[dimension];
    for (std::size_t i = 0; i < sizes_[dimension]; ++i) {
      const std::size_t value = (start + i) % sizes_[dimension];
      if (!fits(values, dimension, value)) continue;
      const std::size_t gained = gain(values, dimension, value);
      if (!best || gained > best->second) best = {value, gained};
    }
    return best;
  }

  // A case around the pair, and how many open pairs it holds.
  [[nodiscard]] std::optional<std::pair<ProductCase, std::size_t>> candidate(const Pair& pair) {
    ProductCase values(sizes_.size(), unset);
    values[pair.a] = pair.u;
    values[pair.b] = pair.v;
    std::size_t gained = 1;
    std::vector<std::size_t> order(sizes_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_() % i]);
    for (const std::size_t dimension : order) {
      if (values[dimension] != unset) continue;
      const auto best = best_value(values, dimension);
      if (!best) return std::nullopt;
      values[dimension] = best->first;
      gained += best->second;
    }
    return std::pair{std::move(values), gained};
  }

  ProductCase next_case() {
    std::pair<ProductCase, std::size_t> best;
    int made = 0;
    for (int attempt = 0; made < candidates && attempt < patience; ++attempt) {
      // The first pair of the list must leave it in the end: it is in every other candidate.
      auto next = candidate(attempt % 2 == 0 ? pairs_.front() : pairs_[random_() % pairs_.size()]);
      if (!next) continue;
      ++made;
      if (next->second > best.second) best = std::move(*next);
    }
    if (made == 0) throw std::logic_error("an allowed pair of values that no case can hold");
    return std::move(best.first);
  }

  std::span<const std::size_t> sizes_;
  const AllowedPair& allowed_;
  std::mt19937_64 random_;
  std::vector<std::size_t> first_;       // by dimension: the number of its first value among all values
  std::vector<std::vector<bool>> open_;  // by numbers of two values: wanted and not yet in a case
  std::vector<Pair> pairs_;              // those that are open
};

}  // namespace

std::vector<ProductCase> pairwise_cases(std::span<const std::size_t> sizes, const AllowedPair& allowed,
                                        std::uint64_t seed) {
  return Generator(sizes, allowed, seed).cases();
}

std::uint64_t product_size(std::span<const std::size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{1}, std::multiplies<>());
}

ProductCase product_case(std::span<const std::size_t> sizes, std::uint64_t index) {
  ProductCase values;
  for (const std::size_t size : sizes) {
    values.push_back(index % size);
    index /= size;
  }
  return values;
}

bool is_allowed(const ProductCase& values, const AllowedPair& allowed) {
  for (std::size_t a = 0; a < values.size(); ++a) {
    for (std::size_t b = a + 1; b < values.size(); ++b) {
      if (!allowed(a, values[a], b, values[b])) return false;
    }
  }
  return true;
}

}  // namespace lamina::test
