// The product over which the same-bits law is tested: strategies, pretended nodes, prefetch, buckets, units, batches.
#pragma once

#include "support/pairwise.hpp"
#include "train/training_world.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <lamina/config/run_config.hpp>
#include <lamina/mpi/communicator.hpp>

namespace lamina::test {

// Pretended nodes that fit a world: all ranks on one; each its own; halves; in turn; the first rank alone.
[[nodiscard]] std::vector<std::vector<int>> pretended_nodes(int ranks);

// One run of the product.
struct ProductRun {
  std::string model;  // small_model's
  std::vector<int> nodes;
  RunConfig config;
  [[nodiscard]] std::string name() const;
};

// Combinations that are refused before a run are not in it.
class Product {
 public:
  explicit Product(int ranks);

  [[nodiscard]] const std::vector<std::size_t>& sizes() const { return sizes_; }  // of the dimensions
  [[nodiscard]] AllowedPair allowed() const;
  [[nodiscard]] ProductRun run(const ProductCase& values) const;

 private:
  struct Sharding {
    Strategy strategy;
    std::int64_t shard_size;  // of hybrid strategies, else 0
  };
  std::vector<Sharding> shardings_;
  std::vector<std::vector<int>> nodes_;
  std::vector<std::int64_t> micro_batches_;
  std::vector<std::size_t> sizes_;
};

// The global batch of the product's runs: 1, 2, 3, 4, 6 and 8 ranks divide it.
inline constexpr std::int64_t product_batch = 24;

// The oracle for a run of `steps` steps; made once for each model and micro-batch.
[[nodiscard]] const RunRecord& product_oracle(const ProductRun& run, std::int64_t steps);

// What the record of a run says that is not the oracle's; empty when all is the same.
[[nodiscard]] std::string difference(const RunRecord& record, const RunRecord& expected);

}  // namespace lamina::test
