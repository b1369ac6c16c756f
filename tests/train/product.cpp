#include "train/product.hpp"

#include "train/oracle.hpp"

#include <array>
#include <map>
#include <tuple>

#include <lamina/shard/store_plan.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lamina::test {

namespace {

// The dimensions, in the order of a case's values.
enum Dimension : std::size_t {
  sharding,
  nodes,
  prefetch,
  prefetch_backward,
  bucket,
  units,
  micro_batch,
  overlap,
  model,
  reshard,
  dimensions
};

constexpr std::array<std::int64_t, 4> prefetches{0, 1, 2, 3};
constexpr std::array<std::int64_t, 5> backward_prefetches{-1, 0, 1, 2, 3};
// MiB: 1 KiB; 10 KiB, which cuts blocks in their middle; more than any unit here; whole units by way of the limit.
constexpr std::array<double, 4> buckets{1.0 / 1024, 10.0 / 1024, 25, 1e9};
const std::array<std::string, 4> unit_rules{"layer", "block", "size:350", "layers:2"};
const std::array<std::string, 2> models{"tied", "untied"};
constexpr std::array<Reshard, 3> reshards{Reshard::yes, Reshard::no, Reshard::node};

bool keeps_all_weights(Strategy strategy) {
  return strategy == Strategy::no_shard || strategy == Strategy::shard_optimizer;
}

}  // namespace

std::vector<std::vector<int>> pretended_nodes(int ranks) {
  std::vector<std::vector<int>> layouts{std::vector<int>(static_cast<std::size_t>(ranks), 0)};
  if (ranks == 1) return layouts;
  std::vector<int> each, halves, turns, uneven;
  for (int rank = 0; rank < ranks; ++rank) {
    each.push_back(rank);
    halves.push_back(2 * rank / ranks);
    turns.push_back(rank % 2);
    uneven.push_back(rank == 0 ? 0 : 1);
  }
  layouts.push_back(each);
  if (ranks > 2) layouts.insert(layouts.end(), {halves, turns, uneven});
  return layouts;
}

std::string ProductRun::name() const {
  const ParallelSection& p = config.parallel;
  const std::array<std::string, 3> reshard_names{"yes", "no", "node"};
  return fmt::format(
      "{} {} shard_size {} nodes {} prefetch {}/{} bucket {} MiB units {} micro_batch {} overlap {} reshard {}", model,
      name_of(p.strategy), p.shard_size, nodes, p.prefetch, p.prefetch_backward, p.bucket_mb, p.units,
      config.train.micro_batch, p.overlap ? "yes" : "no",
      reshard_names[static_cast<std::size_t>(p.reshard_after_forward)]);
}

Product::Product(int ranks) : nodes_(pretended_nodes(ranks)) {
  for (const Strategy strategy :
       {Strategy::no_shard, Strategy::shard_optimizer, Strategy::shard_grad_op, Strategy::full})
    shardings_.push_back({strategy, 0});
  for (const Strategy strategy : {Strategy::hybrid, Strategy::hybrid_optimizer}) {
    for (int size = 1; size <= ranks; ++size) {
      if (ranks % size == 0) shardings_.push_back({strategy, size});  // 1 x n, n x 1 and what lies between
    }
  }
  for (const std::int64_t size : {1, 2, 3}) {
    if (product_batch % (size * ranks) == 0) micro_batches_.push_back(size);
  }
  sizes_.resize(dimensions);
  sizes_[sharding] = shardings_.size();
  sizes_[nodes] = nodes_.size();
  sizes_[prefetch] = prefetches.size();
  sizes_[prefetch_backward] = backward_prefetches.size();
  sizes_[bucket] = buckets.size();
  sizes_[units] = unit_rules.size();
  sizes_[micro_batch] = micro_batches_.size();
  sizes_[overlap] = 2;
  sizes_[model] = models.size();
  sizes_[reshard] = reshards.size();
}

AllowedPair Product::allowed() const {
  // Where a rank keeps all weights there is nothing to reshard, and asking for it is refused.
  return [this](std::size_t a, std::size_t value, std::size_t b, std::size_t of_b) {
    return a != sharding || b != reshard || of_b == 0 || !keeps_all_weights(shardings_[value].strategy);
  };
}

ProductRun Product::run(const ProductCase& values) const {
  ProductRun run{.model = models[values[model]], .nodes = nodes_[values[nodes]], .config = small_run()};
  run.config.train.global_batch = product_batch;
  run.config.train.micro_batch = micro_batches_[values[micro_batch]];
  ParallelSection& parallel = run.config.parallel;
  parallel.strategy = shardings_[values[sharding]].strategy;
  parallel.shard_size = shardings_[values[sharding]].shard_size;
  parallel.prefetch = prefetches[values[prefetch]];
  parallel.prefetch_backward = backward_prefetches[values[prefetch_backward]];
  parallel.bucket_mb = buckets[values[bucket]];
  parallel.units = unit_rules[values[units]];
  parallel.overlap = values[overlap] == 0;
  parallel.reshard_after_forward = reshards[values[reshard]];
  return run;
}

const RunRecord& product_oracle(const ProductRun& run, std::int64_t steps) {
  static std::map<std::tuple<std::string, std::int64_t, std::int64_t>, RunRecord> cache;
  const auto key = std::make_tuple(run.model, run.config.train.micro_batch, steps);
  if (!cache.contains(key)) cache[key] = run_oracle(small_model(run.model), run.config, steps);
  return cache[key];
}

std::string difference(const RunRecord& record, const RunRecord& expected) {
  const auto first = [](const std::vector<double>& a, const std::vector<double>& b) {
    std::size_t step = 0;
    while (step < a.size() && step < b.size() && a[step] == b[step]) ++step;
    return step + 1;
  };
  std::vector<std::string> parts;
  if (record.losses != expected.losses)
    parts.push_back(fmt::format("the loss of step {}", first(record.losses, expected.losses)));
  if (record.norms != expected.norms)
    parts.push_back(fmt::format("the norm of step {}", first(record.norms, expected.norms)));
  if (record.validation != expected.validation) parts.emplace_back("the validation");
  if (record.weights != expected.weights) parts.emplace_back("the final weights");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace lamina::test
