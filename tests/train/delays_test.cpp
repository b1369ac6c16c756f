// N8: random delays of computations, gathers, reductions and loads, others on every rank, change no bit.
#include "train/delays.hpp"

#include "train/oracle.hpp"
#include "train/product.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

constexpr std::int64_t steps = 3;

const mpi::Communicator& world() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(120));
  return comm;
}

std::vector<ProductRun> some_runs() {
  struct Choice {
    Strategy strategy;
    std::int64_t shard_size, prefetch, prefetch_backward;
    double bucket_kib;
    const char *units, *model;
    Reshard reshard = Reshard::yes;
  };
  const std::int64_t ranks = world().size(), pair = ranks % 2 == 0 ? 2 : ranks;
  const std::vector<Choice> choices{
      {Strategy::full, 0, 0, -1, 10, "layer", "untied"},
      {Strategy::full, 0, 1, 3, 1, "layer", "tied"},
      {Strategy::full, 0, 3, 2, 1e9, "layer", "tied"},
      {Strategy::full, 0, 2, 0, 10, "block", "untied", Reshard::node},
      {Strategy::shard_grad_op, 0, 1, -1, 10, "size:350", "untied"},
      {Strategy::hybrid, pair, 2, -1, 1, "layers:2", "untied"},
      {Strategy::hybrid_optimizer, pair, 1, 0, 10, "layer", "tied"},
      {Strategy::shard_optimizer, 0, 3, -1, 1, "layer", "tied"},
      {Strategy::no_shard, 0, 1, -1, 10, "block", "tied"},
  };
  std::vector<ProductRun> runs;
  const auto nodes = pretended_nodes(world().size());
  for (const Choice& choice : choices) {
    ProductRun run{.model = choice.model, .nodes = nodes[runs.size() % nodes.size()], .config = small_run()};
    run.config.train.global_batch = product_batch;
    run.config.parallel.strategy = choice.strategy;
    run.config.parallel.shard_size = choice.shard_size;
    run.config.parallel.prefetch = choice.prefetch;
    run.config.parallel.prefetch_backward = choice.prefetch_backward;
    run.config.parallel.bucket_mb = choice.bucket_kib / 1024;
    run.config.parallel.units = choice.units;
    run.config.parallel.reshard_after_forward = choice.reshard;
    runs.push_back(run);
  }
  return runs;
}

TEST(Delays, ChangeNoBit) {
  std::uint64_t seed = 100 * static_cast<std::uint64_t>(world().rank());
  for (const ProductRun& run : some_runs()) {
    TrainingWorld training(world(), small_model(run.model, run.config.parallel.units), run.config, run.nodes);
    training.engine().set_hooks(random_delays(++seed, 6, std::chrono::milliseconds(2)));
    EXPECT_EQ(difference(run_training(training, steps, true), product_oracle(run, steps)), "") << run.name();
  }
}

// One stream late by much more than everything else takes, again and again: whatever does not wait for it shows.
TEST(Delays, OneSlowStreamChangesNoBit) {
  for (const StreamKind slow : {StreamKind::compute, StreamKind::gather, StreamKind::reduce, StreamKind::copy}) {
    ProductRun run = some_runs()[1];
    run.config.parallel.bucket_mb = 1e9;
    run.config.train.global_batch = 2 * world().size();
    TrainingWorld training(world(), small_model(run.model), run.config, run.nodes);
    training.engine().set_hooks({[slow](const Operation& operation) {
                                   if (operation.stream != slow || operation.kind == OperationKind::release) return;
                                   std::this_thread::sleep_for(std::chrono::milliseconds(4));
                                 },
                                 {}});
    const RunRecord expected = run_oracle(small_model(run.model), run.config, 2);
    EXPECT_EQ(difference(run_training(training, 2, true), expected), "") << name_of(slow);
  }
}

}  // namespace
}  // namespace lamina::test
