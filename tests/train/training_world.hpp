// A small training run assembled from the real parts, on any pretended topology, for tests of the laws.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <lamina/backends/backend.hpp>
#include <lamina/comm/fabric_set.hpp>
#include <lamina/config/run_config.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/model/model_runner.hpp>
#include <lamina/mpi/communicator.hpp>
#include <lamina/shard/weight_store.hpp>
#include <lamina/train/step.hpp>

namespace lamina::test {

inline constexpr std::int64_t sequence_length = 9;

// Small models: "tied" (Llama, tied head), "untied" (Qwen2 with biases, own head).
[[nodiscard]] ModelPlan small_model(const std::string& kind, const std::string& units = "layer");

// Tensors by name: the same for every way of making units.
using NamedWeights = std::map<std::string, std::vector<float>>;
void append_tensors(const FlatLayout& layout, std::span<const float> unit, NamedWeights& weights);

// Global batch 12, twenty steps, warm-up, clipping.
[[nodiscard]] RunConfig small_run();

// Random tokens by sequence number, each label a function of its token; every third sequence has ignored labels, one
// has none at all. Sequences past `count` (if > 0) have no labels.
class RandomBatches {
 public:
  explicit RandomBatches(std::int64_t vocab, std::int64_t count = 0) : vocab_(vocab), count_(count) {}
  [[nodiscard]] MicroBatch load(std::uint64_t first, std::int64_t sequences);

 private:
  std::int64_t vocab_, count_;
  std::vector<std::int32_t> tokens_, labels_;
};

// Everything that a run needs, in the order of construction.
class TrainingWorld {
 public:
  // nodes: node of each rank; empty: one node.
  TrainingWorld(const mpi::Communicator& world, ModelPlan plan, RunConfig config, std::vector<int> nodes = {});

  [[nodiscard]] TrainContext context() {
    return {config_, plan_, world_, *backend_.ops, *runner_, *store_, store_plan_, fabrics_.mesh(), *optimizer_};
  }
  // Made at the first call.
  [[nodiscard]] StepEngine& engine();
  [[nodiscard]] LoadBatch batches();
  [[nodiscard]] WeightStore& store() { return *store_; }
  [[nodiscard]] FabricSet& fabrics() { return fabrics_; }
  [[nodiscard]] const StorePlan& store_plan() const { return store_plan_; }
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const ModelPlan& plan() const { return plan_; }
  [[nodiscard]] RunConfig& config() { return config_; }
  [[nodiscard]] Device& device() { return *backend_.device; }

  // All weights. Collective.
  [[nodiscard]] NamedWeights weights();

 private:
  const mpi::Communicator& world_;
  ModelPlan plan_;
  RunConfig config_;
  Backend backend_;
  std::unique_ptr<Optimizer> optimizer_;
  SumOrder order_;
  Topology topology_;
  StorePlan store_plan_;
  FabricSet fabrics_;
  std::unique_ptr<WeightStore> store_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<StepEngine> engine_;
  RandomBatches batches_;
};

// What the oracle or a run gave.
struct RunRecord {
  std::vector<double> losses, norms;
  NamedWeights weights;
  double validation = 0;
  bool operator==(const RunRecord&) const = default;
};

// Steps 1..steps of a run from random weights, and a validation at the end; `validate_between` also after each step.
// Collective.
[[nodiscard]] RunRecord run_training(TrainingWorld& training, std::int64_t steps, bool validate_between = false);

}  // namespace lamina::test
