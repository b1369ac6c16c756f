// Muon under law 1: a matrix may be cut anywhere, and whoever orthogonalises it, the bits are those of the one-rank
// oracle.
#include "train/oracle.hpp"
#include "train/shared_folder.hpp"
#include "train/training_world.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>

#include <lamina/train/checkpointer.hpp>
#include <lamina/train/step_plan.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

namespace lamina::test {
namespace {

constexpr std::int64_t steps = 8;

const mpi::Communicator& world() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(120));
  return comm;
}

OptimSection published() {
  OptimSection optim = small_run().optim;
  optim.kind = OptimizerKind::muon;
  optim.muon_adjust_lr = MuonAdjustLr::original;
  optim.ema_decay = 0.5;
  return optim;
}

OptimSection matched() {
  OptimSection optim = small_run().optim;
  optim.kind = OptimizerKind::muon;
  optim.muon_momentum = 0.8;
  optim.muon_nesterov = false;
  return optim;
}

const std::vector<Strategy>& all_strategies() {
  static const std::vector<Strategy> list{Strategy::no_shard, Strategy::shard_optimizer, Strategy::shard_grad_op,
                                          Strategy::full,     Strategy::hybrid,          Strategy::hybrid_optimizer};
  return list;
}

RunConfig config_of(const OptimSection& optim, Strategy strategy) {
  RunConfig config = small_run();
  config.optim = optim;
  config.parallel.strategy = strategy;
  const bool hybrid = strategy == Strategy::hybrid || strategy == Strategy::hybrid_optimizer;
  if (hybrid) config.parallel.shard_size = world().size() % 2 == 0 ? 2 : world().size();
  return config;
}

const RunRecord& oracle(const std::string& model, const OptimSection& optim) {
  static std::map<std::pair<std::string, bool>, RunRecord> cache;
  const auto key = std::make_pair(model, optim.muon_nesterov);
  if (!cache.contains(key)) cache[key] = run_oracle(small_model(model), config_of(optim, Strategy::no_shard), steps);
  return cache[key];
}

void expect_same(const RunRecord& run, const RunRecord& expected, const std::string& what) {
  EXPECT_EQ(run.losses, expected.losses) << what;
  EXPECT_EQ(run.norms, expected.norms) << what;
  EXPECT_EQ(run.validation, expected.validation) << what;
  EXPECT_TRUE(run.weights == expected.weights) << what << ": the final weights differ";
}

// One node, every rank a node, and uneven nodes.
std::vector<std::vector<int>> node_layouts() {
  const auto size = static_cast<std::size_t>(world().size());
  std::vector<std::vector<int>> layouts{std::vector<int>(size, 0)};
  if (size == 1) return layouts;
  std::vector<int> each, uneven;
  for (int rank = 0; rank < world().size(); ++rank) {
    each.push_back(rank);
    uneven.push_back(rank == 0 ? 0 : 1);
  }
  layouts.insert(layouts.end(), {each, uneven});
  return layouts;
}

// Blocks of 1024 elements leave the small model's matrices whole; real cuts need a model that is larger than them.
ModelPlan cut_model() {
  const std::string text =
      R"({"model_type": "llama", "tie_word_embeddings": true, "hidden_size": 36, "intermediate_size": 52,
          "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "vocab_size": 29,
          "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu"})";
  return make_model_plan(parse_model_config(text, "cut"));
}

TEST(Muon, TheOracleLearnsAndIsNotAdamW) {
  for (const OptimSection& optim : {published(), matched()}) {
    const RunRecord& record = oracle("tied", optim);
    EXPECT_LT(record.losses.back(), record.losses.front());
    OptimSection adamw = optim;
    adamw.kind = OptimizerKind::adamw;
    EXPECT_NE(run_oracle(small_model("tied"), config_of(adamw, Strategy::no_shard), steps).weights, record.weights);
  }
  EXPECT_NE(oracle("tied", published()).weights, oracle("tied", matched()).weights);
}

TEST(Muon, SameBitsInEveryStrategyAndNodeLayout) {
  for (const OptimSection& optim : {published(), matched()}) {
    for (const auto& nodes : node_layouts()) {
      for (const Strategy strategy : all_strategies()) {
        TrainingWorld training(world(), small_model("tied"), config_of(optim, strategy), nodes);
        expect_same(run_training(training, steps), oracle("tied", optim),
                    std::string(name_of(strategy)) + " nodes " + testing::PrintToString(nodes));
      }
    }
  }
}

TEST(Muon, SameBitsWhereShardsCutMatrices) {
  const ModelPlan plan = cut_model();
  const RunRecord expected = run_oracle(plan, config_of(matched(), Strategy::no_shard), steps);
  for (const auto& nodes : node_layouts()) {
    for (const Strategy strategy : all_strategies()) {
      TrainingWorld training(world(), plan, config_of(matched(), strategy), nodes);
      const bool divides = optimizer_group(training.store_plan(), training.fabrics().mesh()).world_size() > 1;
      std::uint64_t moved = 0;
      for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
        for (const FlatRange& range : training.store().optimizer_ranges(unit)) {
          for (const Span& span : training.store().layout(unit).spans(range)) {
            moved += span.tensor_offset > 0 && plan.units[unit].tensors[span.tensor].block_matrix ? 1U : 0U;
          }
        }
      }
      EXPECT_EQ(moved > 0, divides) << "the test cuts matrices";
      expect_same(run_training(training, steps), expected,
                  std::string(name_of(strategy)) + " nodes " + testing::PrintToString(nodes));
    }
  }
}

TEST(Muon, SameBitsForEveryWayOfMakingUnits) {
  for (const std::string units : {"block", "layers:2", "layers:9", "size:1", "size:1000000"}) {
    for (const std::string model : {"tied", "untied"}) {
      TrainingWorld training(world(), small_model(model, units), config_of(published(), Strategy::full));
      expect_same(run_training(training, steps), oracle(model, published()), model + " " + units);
    }
  }
}

TEST(Muon, MemoryAndTrafficAreThePlannedOnes) {
  const ModelPlan plan = cut_model();
  for (const auto& nodes : node_layouts()) {
    for (const Strategy strategy : all_strategies()) {
      TrainingWorld training(world(), plan, config_of(published(), strategy), nodes);
      const Mesh& mesh = training.fabrics().mesh();
      const UpdateNeeds needs = update_needs(published(), training.store_plan(), mesh);
      const std::uint64_t state = state_bytes(training.store_plan(), mesh);
      const std::string what = std::string(name_of(strategy)) + " nodes " + testing::PrintToString(nodes);
      EXPECT_EQ(training.device().bytes_in_use(),
                state + needs.bytes + ModelRunner::activation_bytes(plan, 1, sequence_length, true))
          << what;
      const std::int64_t most = world().max(static_cast<std::int64_t>(state), "the most state");
      EXPECT_EQ(state_bytes(training.store_plan(), world().size()), static_cast<std::uint64_t>(most)) << what;
      EXPECT_EQ(needs.most_bytes,
                static_cast<std::uint64_t>(world().max(static_cast<std::int64_t>(needs.bytes), "the most memory")))
          << what;
      const std::uint64_t before = training.fabrics().floats_sent();
      const std::size_t allocations = training.device().allocations();
      static_cast<void>(training.engine().run(training.batches(), 1, 0, false));
      EXPECT_EQ(training.device().allocations(), allocations);
      EXPECT_EQ(
          training.fabrics().floats_sent() - before,
          floats_sent_by_step(plan, training.store_plan(), mesh, training.fabrics().order(), 12 / world().size()) +
              needs.floats_sent)
          << what;
    }
  }
}

TEST(Muon, HalvesTheMomentsOfTheBlocks) {
  const ModelPlan plan = cut_model();
  TrainingWorld muon(world(), plan, config_of(matched(), Strategy::full));
  TrainingWorld adamw(world(), plan, config_of(small_run().optim, Strategy::full));
  std::int64_t saved = 0, expected = 0;
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
    saved += static_cast<std::int64_t>(adamw.store().optimizer_shard(unit).exp_avg_sq.size()) -
             static_cast<std::int64_t>(muon.store().optimizer_shard(unit).exp_avg_sq.size());
    for (const TensorSpec& tensor : plan.units[unit].tensors) expected += tensor.block_matrix ? tensor.elements() : 0;
    if (std::ranges::any_of(plan.units[unit].tensors, &TensorSpec::block_matrix)) {
      expected += muon.store().layout(unit).padded_elements() - muon.store().layout(unit).elements();  // padding
    }
  }
  std::array<std::int64_t, 1> all{saved};
  world().sum(all, "the floats saved");
  EXPECT_EQ(all[0], expected);
}

class MuonResuming : public testing::Test {
 protected:
  [[nodiscard]] RunConfig config(const OptimSection& optim, Strategy strategy) const {
    RunConfig config = config_of(optim, strategy);
    config.run.dir = folder_.path().string();
    return config;
  }

  std::string save(const ModelPlan& plan, const OptimSection& optim, std::int64_t count) {
    TrainingWorld training(world(), plan, config(optim, Strategy::full));
    static_cast<void>(run_training(training, count));
    Checkpointer checkpointer(world(), training.store(), training.config(), {"{}", "", "", ""}, {});
    const auto next = static_cast<std::uint64_t>(count * training.config().train.global_batch);
    return world().broadcast(checkpointer.save({count, next, 1}).string(), 0, "the checkpoint");
  }

  static void go_on(const mpi::Communicator& ranks, const ModelPlan& plan, const RunConfig& config,
                    const std::string& saved, const RunRecord& expected) {
    TrainingWorld training(ranks, plan, config);
    Checkpointer checkpointer(ranks, training.store(), training.config(), {"{}", "", "", ""}, {});
    const std::int64_t done = checkpointer.load(saved).step;
    for (std::int64_t step = done + 1; step <= steps; ++step) {
      const auto first = static_cast<std::uint64_t>((step - 1) * training.config().train.global_batch);
      const StepResult result = training.engine().run(training.batches(), step, first, false);
      EXPECT_EQ(result.loss, expected.losses[static_cast<std::size_t>(step - 1)]) << "step " << step;
    }
    EXPECT_TRUE(training.weights() == expected.weights) << name_of(config.parallel.strategy);
  }

  SharedFolder folder_{world(), "muon"};
};

TEST_F(MuonResuming, GoesOnWithTheSameBitsInEveryStrategy) {
  const ModelPlan plan = cut_model();
  const RunRecord expected = run_oracle(plan, config_of(published(), Strategy::no_shard), steps);
  const std::string saved = save(plan, published(), 3);
  for (const Strategy strategy : all_strategies()) {
    go_on(world(), plan, config(published(), strategy), saved, expected);
  }
}

// Saved by all ranks, loaded by one, two, three of them.
TEST_F(MuonResuming, AnyWorldSizeGoesOn) {
  const ModelPlan plan = cut_model();
  const RunRecord expected = run_oracle(plan, config_of(matched(), Strategy::no_shard), steps);
  const std::string saved = save(plan, matched(), 4);
  for (int size = 1; size < world().size(); ++size) {
    const mpi::Communicator part = world().split(world().rank() < size ? 0 : 1, world().rank());
    if (world().rank() < size) go_on(part, plan, config(matched(), Strategy::full), saved, expected);
    world().barrier("this world size");
  }
}

TEST_F(MuonResuming, AnotherKindIsRefused) {
  const ModelPlan plan = small_model("tied");
  const std::string saved = save(plan, matched(), 1);
  TrainingWorld other(world(), plan, config(small_run().optim, Strategy::full));
  Checkpointer checkpointer(world(), other.store(), other.config(), {"{}", "", "", ""}, {});
  try {
    static_cast<void>(checkpointer.load(saved));
    FAIL() << "AdamW must not go on from Muon's state";
  } catch (const mpi::AgreedError& error) {
    EXPECT_NE(std::string(error.what()).find("saved with muon"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lamina::test
