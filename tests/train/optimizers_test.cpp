// Every kind of optimizer under law 1: the same bits for every world size, strategy and across save and resume. One
// rank that holds everything decides.
#include "train/training_world.hpp"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>

#include <lamina/train/checkpointer.hpp>

#include <gmock/gmock.h>
#include <unistd.h>

namespace lamina::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t steps = 8;

const mpi::Communicator& world() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(120));
  return comm;
}

std::map<std::string, OptimSection> all_kinds() {
  const OptimSection base = small_run().optim;
  std::map<std::string, OptimSection> kinds;
  const auto add = [&](const std::string& name, OptimizerKind kind) -> OptimSection& {
    OptimSection& optim = kinds.emplace(name, base).first->second;
    optim.kind = kind;
    return optim;
  };
  add("adamw", OptimizerKind::adamw);
  add("adam", OptimizerKind::adam);
  OptimSection& sgd = add("sgd", OptimizerKind::sgd);
  sgd.lr = 0.5;
  OptimSection& momentum = add("sgd with momentum", OptimizerKind::sgd);
  momentum.lr = 0.3;
  momentum.momentum = 0.9;
  OptimSection& nesterov = add("sgd nesterov", OptimizerKind::sgd);
  nesterov.lr = 0.3;
  nesterov.momentum = 0.8;
  nesterov.nesterov = true;
  OptimSection& lion = add("lion", OptimizerKind::lion);
  lion.lr = 5e-3;
  lion.beta2 = 0.99;
  OptimSection& groups = add("groups", OptimizerKind::adamw);
  groups.groups = "*.mlp.*:lr=0.5, *norm*:decay=0.2:lr=2, *.q_proj.weight:lr=0";
  return kinds;
}

RunConfig config_of(const OptimSection& optim, Strategy strategy) {
  RunConfig config = small_run();
  config.optim = optim;
  config.parallel.strategy = strategy;
  const bool hybrid = strategy == Strategy::hybrid || strategy == Strategy::hybrid_optimizer;
  if (hybrid) config.parallel.shard_size = world().size() % 2 == 0 ? 2 : world().size();
  return config;
}

// Every rank alone, not sharded.
RunRecord alone(const OptimSection& optim) {
  static const mpi::Communicator self = world().split(world().rank(), 0);
  TrainingWorld training(self, small_model("tied"), config_of(optim, Strategy::no_shard));
  return run_training(training, steps);
}

void expect_same(const RunRecord& run, const RunRecord& expected, const std::string& what) {
  EXPECT_EQ(run.losses, expected.losses) << what;
  EXPECT_EQ(run.norms, expected.norms) << what;
  EXPECT_EQ(run.validation, expected.validation) << what;
  EXPECT_TRUE(run.weights == expected.weights) << what << ": the final weights differ";
}

TEST(Optimizers, SameBitsForEveryKindAndStrategy) {
  for (const auto& [name, optim] : all_kinds()) {
    const RunRecord expected = alone(optim);
    EXPECT_LT(expected.losses.back(), expected.losses.front()) << name << " learns";
    for (const Strategy strategy : {Strategy::shard_optimizer, Strategy::full, Strategy::hybrid_optimizer}) {
      TrainingWorld training(world(), small_model("tied"), config_of(optim, strategy));
      expect_same(run_training(training, steps), expected, name + " " + std::string(name_of(strategy)));
    }
  }
}

TEST(Optimizers, KindsDiffer) {
  std::map<std::string, RunRecord> records;
  for (const auto& [name, optim] : all_kinds()) records[name] = alone(optim);
  for (const auto& [name, record] : records) {
    for (const auto& [other, of_other] : records) {
      if (name == other) continue;
      EXPECT_FALSE(record.weights == of_other.weights) << name << " and " << other;
    }
  }
}

TEST(Optimizers, StateIsAllocatedOnlyWhereItIsUsed) {
  for (const auto& [name, optim] : all_kinds()) {
    const ModelPlan plan = small_model("untied");
    TrainingWorld training(world(), plan, config_of(optim, Strategy::full));
    EXPECT_EQ(training.store_plan().moments, moment_count(optim));
    const std::uint64_t activations = ModelRunner::activation_bytes(plan, 1, sequence_length, true);
    EXPECT_EQ(training.device().bytes_in_use(), state_bytes(training.store_plan(), world().size()) + activations);
    std::uint64_t shards = 0;
    for (const UnitSpec& unit : plan.units) {
      shards += sizeof(float) * static_cast<std::uint64_t>(FlatLayout(unit, world().size()).block_elements());
    }
    EXPECT_EQ(state_bytes(training.store_plan(), world().size()),
              shards * (2 + static_cast<std::uint64_t>(moment_count(optim))))
        << name;
  }
}

// A tensor whose learning rate is multiplied by 0 stays as it was; the others move.
TEST(Optimizers, AGroupReachesItsTensorsOnly) {
  OptimSection optim = small_run().optim;
  optim.groups = "model.layers.1.*:lr=0";
  TrainingWorld training(world(), small_model("untied"), config_of(optim, Strategy::full));
  const auto before = training.weights();
  static_cast<void>(run_training(training, 2));
  const auto after = training.weights();
  std::size_t frozen = 0;
  for (const auto& [tensor, values] : before) {
    const bool fixed = tensor.starts_with("model.layers.1.");
    frozen += fixed ? 1 : 0;
    EXPECT_EQ(values == after.at(tensor), fixed) << tensor;
  }
  EXPECT_EQ(frozen, 12u);
}

class Resuming : public testing::Test {
 protected:
  Resuming() {
    const std::string id = world().broadcast(std::to_string(::getpid()), 0, "the folder");
    folder_ = std::filesystem::path(testing::TempDir()) / ("lamina_optimizers_" + id);
    if (world().rank() == 0) std::filesystem::create_directories(folder_);
    world().barrier("the folder");
  }
  ~Resuming() override {
    world().barrier("the end");
    if (world().rank() == 0) std::filesystem::remove_all(folder_);
  }

  [[nodiscard]] RunConfig config(const OptimSection& optim, Strategy strategy) const {
    RunConfig config = config_of(optim, strategy);
    config.run.dir = folder_.string();
    return config;
  }

  // Saves after `count` steps of a run.
  std::string save(const OptimSection& optim, std::int64_t count, RunRecord& record) {
    TrainingWorld training(world(), small_model("tied"), config(optim, Strategy::full));
    record = run_training(training, count);
    const Checkpointer checkpointer(world(), training.store(), training.config(), "{}", {});
    const auto next = static_cast<std::uint64_t>(count * training.config().train.global_batch);
    return world().broadcast(checkpointer.save({count, next, 1}).string(), 0, "the checkpoint");
  }

  // What loading says, on every rank.
  std::string refusal(const OptimSection& optim, const std::string& saved) {
    TrainingWorld training(world(), small_model("tied"), config(optim, Strategy::full));
    Checkpointer checkpointer(world(), training.store(), training.config(), "{}", {});
    try {
      static_cast<void>(checkpointer.load(saved));
    } catch (const mpi::AgreedError& error) {
      return error.what();
    }
    return "nothing";
  }

  std::filesystem::path folder_;
};

TEST_F(Resuming, GoesOnWithTheSameBits) {
  for (const auto& [name, optim] : all_kinds()) {
    const RunRecord expected = alone(optim);
    RunRecord before;
    const std::string saved = save(optim, 3, before);
    const Strategy strategy = world().size() == 3 ? Strategy::no_shard : Strategy::hybrid_optimizer;
    TrainingWorld training(world(), small_model("tied"), config(optim, strategy));
    Checkpointer checkpointer(world(), training.store(), training.config(), "{}", {});
    EXPECT_EQ(checkpointer.load(saved).step, 3);
    for (std::int64_t step = 4; step <= steps; ++step) {
      const auto first = static_cast<std::uint64_t>((step - 1) * training.config().train.global_batch);
      const StepResult result = training.engine().run(training.batches(), step, first, false);
      EXPECT_EQ(result.loss, expected.losses[static_cast<std::size_t>(step - 1)]) << name << " step " << step;
    }
    EXPECT_TRUE(training.weights() == expected.weights) << name;
  }
}

TEST_F(Resuming, AnotherKindIsRefused) {
  const auto kinds = all_kinds();
  RunRecord record;
  const std::string saved = save(kinds.at("adamw"), 1, record);
  for (const std::string other : {"adam", "lion", "sgd with momentum"}) {
    EXPECT_THAT(refusal(kinds.at(other), saved),
                AllOf(HasSubstr(std::string("optim.kind is ") + std::string(name_of(kinds.at(other).kind))),
                      HasSubstr("saved with adamw")));
  }
  const std::string plain = save(kinds.at("sgd"), 2, record);
  EXPECT_THAT(refusal(kinds.at("sgd with momentum"), plain), HasSubstr("without momentum"));
  EXPECT_THAT(refusal(kinds.at("lion"), plain), HasSubstr("saved with sgd"));
  const std::string moving = save(kinds.at("sgd with momentum"), 3, record);
  EXPECT_THAT(refusal(kinds.at("sgd"), moving), HasSubstr("with momentum"));
}

}  // namespace
}  // namespace lamina::test
