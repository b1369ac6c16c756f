// Muon for the matrices of decoder blocks, AdamW for everything else.
#pragma once

#include "adam.hpp"

#include <optional>
#include <vector>

#include <lamina/optim/muon_plan.hpp>

namespace lamina {

class MuonOptimizer final : public AdamOptimizer {
 public:
  using AdamOptimizer::AdamOptimizer;
  void prepare(WeightStore& store, Device& device) override;

 private:
  // A part of a matrix that is updated (rank) or orthogonalised (owner) here, and where it lies here.
  struct MovingPiece {
    int rank = 0, owner = 0;
    std::span<float> in_shard, in_staging;
  };
  // What an own matrix is orthogonalised as.
  struct WholeMatrix {
    std::int64_t rows = 0, cols = 0;
    float* data = nullptr;
  };
  struct Gathered {
    std::vector<MovingPiece> pieces;
    std::vector<WholeMatrix> matrices;
  };

  void update_unit(WeightStore& store, Ops& ops, std::size_t unit, const OptimizerShard& shard,
                   const UpdateStep& step) const override;
  [[nodiscard]] Gathered arrange(std::size_t unit, const OptimizerShard& shard) const;
  void collect(WeightStore& store, const std::vector<MovingPiece>& pieces) const;
  void give_back(WeightStore& store, const std::vector<MovingPiece>& pieces) const;
  [[nodiscard]] std::span<float> staging() const;
  [[nodiscard]] std::span<float> workspace() const;

  std::optional<MuonPlan> plan_;
  int rank_ = 0;
  Buffer buffer_;  // staging, then the workspace of one orthogonalisation
};

}  // namespace lamina
