#include "muon.hpp"

#include <algorithm>

#include <lamina/base/check.hpp>

namespace lamina {

namespace {

std::span<float> part_of(const OptimizerShard& shard, std::span<float> values, FlatRange part) {
  return values.subspan(static_cast<std::size_t>(part.begin - shard.range.begin),
                        static_cast<std::size_t>(part.length()));
}

}  // namespace

void MuonOptimizer::prepare(WeightStore& store, Device& device) {
  std::vector<UnitSpec> units;
  std::vector<std::vector<FlatRange>> ranges;
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    units.push_back(store.layout(unit).unit());
    ranges.push_back(store.optimizer_ranges(unit));
  }
  plan_.emplace(units, std::move(ranges));
  rank_ = store.optimizer_rank();
  buffer_ = device.allocate_floats(static_cast<std::size_t>(plan_->workspace(rank_)), "Muon's matrices");
}

std::span<float> MuonOptimizer::staging() const {
  return {buffer_.floats(), static_cast<std::size_t>(plan_->staging(rank_))};
}

std::span<float> MuonOptimizer::workspace() const {
  return std::span(buffer_.floats(), buffer_.bytes() / sizeof(float)).subspan(staging().size());
}

MuonOptimizer::Gathered MuonOptimizer::arrange(std::size_t unit, const OptimizerShard& shard) const {
  Gathered gathered;
  std::size_t staged = 0;
  for (const MuonMatrix& matrix : plan_->matrices(unit)) {
    const bool own = matrix.owner == rank_, moves = !plan_->in_place(unit, matrix);
    if (own && !moves) {
      gathered.matrices.push_back({matrix.rows, matrix.cols, part_of(shard, shard.grad, matrix.range).data()});
    }
    if (!moves) continue;
    std::span<float> whole;
    if (own) {
      whole = staging().subspan(staged, static_cast<std::size_t>(matrix.range.length()));
      staged += whole.size();
      gathered.matrices.push_back({matrix.rows, matrix.cols, whole.data()});
    }
    for (int rank = 0; rank < plan_->ranks(); ++rank) {
      const FlatRange piece = plan_->piece(unit, matrix, rank);
      if (piece.length() == 0 || (!own && rank != rank_)) continue;
      MovingPiece& moving = gathered.pieces.emplace_back(MovingPiece{rank, matrix.owner, {}, {}});
      if (rank == rank_) moving.in_shard = part_of(shard, shard.grad, piece);
      if (!own) continue;
      moving.in_staging = whole.subspan(static_cast<std::size_t>(piece.begin - matrix.range.begin),
                                        static_cast<std::size_t>(piece.length()));
    }
  }
  return gathered;
}

void MuonOptimizer::collect(WeightStore& store, const std::vector<MovingPiece>& pieces) const {
  std::vector<FloatSend> sends;
  std::vector<FloatReceive> receives;
  for (const MovingPiece& piece : pieces) {
    if (piece.owner != rank_) {
      sends.push_back({piece.owner, piece.in_shard});
    } else if (piece.rank != rank_) {
      receives.push_back({piece.rank, piece.in_staging});
    } else {
      std::ranges::copy(piece.in_shard, piece.in_staging.begin());
    }
  }
  store.exchange(sends, receives);
}

void MuonOptimizer::give_back(WeightStore& store, const std::vector<MovingPiece>& pieces) const {
  std::vector<FloatSend> sends;
  std::vector<FloatReceive> receives;
  for (const MovingPiece& piece : pieces) {
    if (piece.owner != rank_) {
      receives.push_back({piece.owner, piece.in_shard});
    } else if (piece.rank != rank_) {
      sends.push_back({piece.rank, piece.in_staging});
    } else {
      std::ranges::copy(piece.in_staging, piece.in_shard.begin());
    }
  }
  store.exchange(sends, receives);
}

// The gradient's memory holds the direction, then what it became: nobody needs the gradient any more.
void MuonOptimizer::update_unit(WeightStore& store, Ops& ops, std::size_t unit, const OptimizerShard& shard,
                                const UpdateStep& step) const {
  require(plan_.has_value(), "MuonOptimizer: prepare comes before the first update");
  for_pieces(store.layout(unit), unit, shard, step,
             [&](const TensorSpec& tensor, const Piece& piece, const UpdateStep& own, double weight_decay) {
               if (tensor.block_matrix) {
                 ops.muon_direction(piece.grad, piece.exp_avg,
                                    {options().muon_momentum, options().muon_nesterov, own.grad_scale});
               } else {
                 update_piece(ops, piece, own, weight_decay);
               }
             });
  const Gathered gathered = arrange(unit, shard);
  collect(store, gathered.pieces);
  for (const WholeMatrix& matrix : gathered.matrices) {
    ops.orthogonalise({matrix.data, matrix.rows, matrix.cols}, workspace());
  }
  give_back(store, gathered.pieces);
  for_pieces(store.layout(unit), unit, shard, step,
             [&](const TensorSpec& tensor, const Piece& piece, const UpdateStep& own, double weight_decay) {
               if (!tensor.block_matrix) return;
               const double scale = muon_lr_scale(options().muon_adjust_lr, tensor.shape[0], tensor.shape[1]);
               ops.muon_update(piece.param, piece.grad, {own.lr, weight_decay, scale});
             });
}

}  // namespace lamina
