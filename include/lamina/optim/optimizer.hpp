// The update of the weights from their gradients: one interface for every kind, one factory.
//
// AdamW (Loshchilov and Hutter 2019), Adam with the decay in the gradient, SGD with momentum (all three as torch.optim
// computes them), Lion (Chen et al. 2023): each is one fused pass over a rank's shards. Muon (Jordan 2024) for the
// matrices of decoder blocks with AdamW for everything else: see muon_plan.hpp. Weight decay is for matrices only,
// unless a parameter group says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <lamina/config/run_config.hpp>
#include <lamina/device/device.hpp>
#include <lamina/ops/ops.hpp>
#include <lamina/shard/unit_spec.hpp>
#include <lamina/shard/weight_store.hpp>

namespace lamina {

// "adamw", "adam", "sgd", "lion", "muon": as in the configuration and in checkpoints.
[[nodiscard]] std::string_view name_of(OptimizerKind kind);

// State buffers for each element: 0 (SGD without momentum), 1 (exp_avg: SGD's momentum, Lion's) or 2 (also exp_avg_sq,
// in Muon only for what AdamW updates).
[[nodiscard]] int moment_count(const OptimSection& optim);

// Enters into `plan` what `optim` keeps for each element: moments, averaged weights.
void plan_state(StorePlan& plan, const OptimSection& optim);

// What updates need besides state: nothing but in Muon.
struct UpdateNeeds {
  std::uint64_t bytes = 0;        // of memory, on the mesh's own rank
  std::uint64_t most_bytes = 0;   // on the rank that needs most
  std::uint64_t floats_sent = 0;  // by the mesh's own rank to other nodes, in one update
};
[[nodiscard]] UpdateNeeds update_needs(const OptimSection& optim, const StorePlan& plan, const Mesh& mesh);

// How one tensor is updated.
struct TensorRule {
  double lr_factor = 1;  // times the step's learning rate
  double weight_decay = 0;
  bool operator==(const TensorRule&) const = default;
};
// By unit and tensor. Throws UsageError for a pattern of optim.groups that no tensor takes.
using TensorRules = std::vector<std::vector<TensorRule>>;
[[nodiscard]] TensorRules tensor_rules(const OptimSection& optim, std::span<const UnitSpec> units);

// What one step is told. `step` is 1-based and counts updates (bias correction).
struct UpdateStep {
  std::int64_t step = 1;
  double lr = 0;
  double grad_scale = 1;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Takes the memory that updates of this store need (update_needs). Once, before the first. The device must outlive
  // this.
  virtual void prepare(WeightStore& /*store*/, Device& /*device*/) {}

  // Updates all units in order, then their averaged weights where the store keeps some, and publishes them. Collective.
  void update(WeightStore& store, Ops& ops, const UpdateStep& step) const;

 protected:
  Optimizer(TensorRules rules, const OptimSection& optim) : rules_(std::move(rules)), ema_decay_(optim.ema_decay) {}

  // A part of one tensor. Moments that the kind does not have are empty.
  struct Piece {
    std::span<float> param, exp_avg, exp_avg_sq, grad;
  };
  // step.lr is the tensor's own.
  virtual void update_piece(Ops& ops, const Piece& piece, const UpdateStep& step, double weight_decay) const = 0;

  // Every piece of the shard with its rule applied to the step.
  using UsePiece =
      std::function<void(const TensorSpec& tensor, const Piece& piece, const UpdateStep& step, double weight_decay)>;
  void for_pieces(const FlatLayout& layout, std::size_t unit, const OptimizerShard& shard, const UpdateStep& step,
                  const UsePiece& use) const;
  // The weights and moments of one unit: piece by piece.
  virtual void update_unit(WeightStore& store, Ops& ops, std::size_t unit, const OptimizerShard& shard,
                           const UpdateStep& step) const;

 private:
  TensorRules rules_;
  double ema_decay_;
};

// `units`: those of the store that will be updated, in its order. Throws what tensor_rules throws.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimSection& optim, std::span<const UnitSpec> units);

}  // namespace lamina
