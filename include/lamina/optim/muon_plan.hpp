// Which rank orthogonalises which matrix, what is sent for it, and the memory that takes. Pure arithmetic.
//
// A shard may cut a matrix anywhere, and Muon needs it whole: the rank that updates most of it (the lowest on ties)
// collects the direction's pieces from the others, orthogonalises, and sends the pieces back. Where a rank has all of a
// matrix nothing moves. All matrices of a unit travel at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <lamina/config/run_config.hpp>
#include <lamina/shard/flat_layout.hpp>
#include <lamina/shard/store_plan.hpp>

namespace lamina {

// A matrix of a decoder block.
struct MuonMatrix {
  std::size_t tensor = 0;
  std::int64_t rows = 0, cols = 0;
  FlatRange range;  // in its unit's flat buffer
  int owner = 0;    // the rank of the optimizer's group that orthogonalises it
};

class MuonPlan {
 public:
  // ranges[unit][rank]: the part of a unit that each rank of the optimizer's group updates (store_plan.hpp).
  MuonPlan(std::span<const UnitSpec> units, std::vector<std::vector<FlatRange>> ranges);

  [[nodiscard]] const std::vector<MuonMatrix>& matrices(std::size_t unit) const { return matrices_.at(unit); }
  // The part of a matrix that `rank` updates; empty where it has none.
  [[nodiscard]] FlatRange piece(std::size_t unit, const MuonMatrix& matrix, int rank) const;
  // Whether its owner updates all of it, so that it is orthogonalised where it lies.
  [[nodiscard]] bool in_place(std::size_t unit, const MuonMatrix& matrix) const;
  [[nodiscard]] int ranks() const { return static_cast<int>(ranges_.empty() ? 0 : ranges_.front().size()); }

  // Floats in which `rank` puts together its matrices of the unit that has most of them ...
  [[nodiscard]] std::int64_t staging(int rank) const;
  // ... and with what the largest orthogonalisation of the rank needs besides (Ops::orthogonalise_workspace).
  [[nodiscard]] std::int64_t workspace(int rank) const;
  // Floats that `rank` sends to ranks for which `counts` says yes, in one update.
  [[nodiscard]] std::uint64_t floats_sent(int rank, const std::function<bool(int)>& counts) const;

 private:
  std::vector<std::vector<MuonMatrix>> matrices_;  // by unit
  std::vector<std::vector<FlatRange>> ranges_;
};

// Times the learning rate, for a matrix of that shape: original (Jordan) sqrt(max(1, rows / cols)); match_rms_adamw
// (Liu et al. 2025) 0.2 sqrt(max(rows, cols)), with which the learning rate and decay of AdamW fit.
[[nodiscard]] double muon_lr_scale(MuonAdjustLr adjust, std::int64_t rows, std::int64_t cols);

}  // namespace lamina
