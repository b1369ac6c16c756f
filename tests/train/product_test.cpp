// Law 1 over the product of everything that must not change a bit: every pair of values in the suite, all of it in
// tools/nightly_laws.py.
#include "train/product.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <lamina/base/random.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace lamina::test {
namespace {

constexpr std::int64_t steps = 4;

const mpi::Communicator& world() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(120));
  return comm;
}

// Empty, or what differs from the oracle on this rank.
std::string run_case(const ProductRun& run) {
  TrainingWorld training(world(), small_model(run.model, run.config.parallel.units), run.config, run.nodes);
  return difference(run_training(training, steps, true), product_oracle(run, steps));
}

TEST(Product, EveryPairOfValuesGivesTheSameBits) {
  const Product product(world().size());
  // Two different lists: they hold the same pairs in other company.
  for (const std::uint64_t seed : {20U, 21U}) {
    const std::vector<ProductCase> cases = pairwise_cases(product.sizes(), product.allowed(), seed);
    for (const ProductCase& values : cases) {
      const ProductRun run = product.run(values);
      EXPECT_EQ(run_case(run), "") << run.name();
    }
    if (world().rank() == 0) std::printf("%zu cases hold every pair of values\n", cases.size());
  }
}

// The slice that LAMINA_FULL_PRODUCT asks for: "I/N" is every N-th case from the I-th (1-based), "1" is everything.
struct Slice {
  std::uint64_t part = 1, parts = 1;
};
std::optional<Slice> wanted_slice() {
  const char* const text = std::getenv("LAMINA_FULL_PRODUCT");
  if (text == nullptr) return std::nullopt;
  unsigned long long part = 1, parts = 1;
  const int read = std::sscanf(text, "%llu/%llu", &part, &parts);
  if (read < 1 || part < 1 || part > parts) ADD_FAILURE() << "LAMINA_FULL_PRODUCT is " << text << ", not I/N";
  return Slice{part, parts};
}

// Cases are run in a shuffled order, so that a slice and a run that is cut short are fair samples.
class FullProduct {
 public:
  FullProduct(const Product& product, const Slice& slice, double seconds)
      : product_(product), slice_(slice), seconds_(seconds) {}

  void run() {
    const AllowedPair allowed = product_.allowed();
    const std::uint64_t total = product_size(product_.sizes());
    for (std::uint64_t place = slice_.part - 1; place < total; place += slice_.parts) {
      const ProductCase values = product_case(product_.sizes(), permute_index(1, total, place));
      if (!is_allowed(values, allowed)) continue;
      ++wanted_;
      if (!out_of_time_) out_of_time_ = wanted_ % 8 == 0 && time_is_up();
      if (!out_of_time_) run_one(product_.run(values));
    }
  }

  // Collective. By case: on how many ranks it failed.
  void report() {
    world().sum(failed_, "the results");
    const auto failures = std::ranges::count_if(failed_, [](std::int64_t ranks) { return ranks > 0; });
    EXPECT_EQ(failures, 0);
    if (world().rank() != 0) return;
    std::printf("full product: ranks %d part %llu/%llu: %zu of %llu cases run, %lld failures\n", world().size(),
                static_cast<unsigned long long>(slice_.part), static_cast<unsigned long long>(slice_.parts),
                failed_.size(), static_cast<unsigned long long>(wanted_), static_cast<long long>(failures));
  }

 private:
  [[nodiscard]] bool time_is_up() const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
    return seconds_ > 0 && world().max(spent.count() > seconds_ ? 1 : 0, "the time") > 0;
  }

  void run_one(const ProductRun& run) {
    const std::string differs = run_case(run);
    failed_.push_back(differs.empty() ? 0 : 1);
    EXPECT_EQ(differs, "") << run.name();
  }

  const Product& product_;
  Slice slice_;
  double seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::uint64_t wanted_ = 0;
  bool out_of_time_ = false;
  std::vector<std::int64_t> failed_;
};

TEST(Product, TheWholeProductGivesTheSameBits) {
  const std::optional<Slice> slice = wanted_slice();
  if (!slice) GTEST_SKIP() << "hours of work: tools/nightly_laws.py runs it";
  const char* const seconds = std::getenv("LAMINA_FULL_PRODUCT_SECONDS");
  const Product product(world().size());
  FullProduct full(product, *slice, seconds == nullptr ? 0 : std::strtod(seconds, nullptr));
  full.run();
  full.report();
}

}  // namespace
}  // namespace lamina::test
