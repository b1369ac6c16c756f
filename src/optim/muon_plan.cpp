#include <algorithm>
#include <cmath>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/ops/ops.hpp>
#include <lamina/optim/muon_plan.hpp>

namespace lamina {

namespace {

FlatRange common(FlatRange a, FlatRange b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

int owner_of(FlatRange matrix, std::span<const FlatRange> ranges) {
  const auto smaller = [&](FlatRange a, FlatRange b) {
    return common(matrix, a).length() < common(matrix, b).length();
  };
  return static_cast<int>(std::ranges::max_element(ranges, smaller) - ranges.begin());  // the first of equals
}

}  // namespace

MuonPlan::MuonPlan(std::span<const UnitSpec> units, std::vector<std::vector<FlatRange>> ranges)
    : ranges_(std::move(ranges)) {
  require(units.size() == ranges_.size(), "MuonPlan: ranges of every unit");
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    std::vector<MuonMatrix>& of_unit = matrices_.emplace_back();
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < units[unit].tensors.size(); ++i) {
      const TensorSpec& tensor = units[unit].tensors[i];
      const FlatRange range{offset, offset + tensor.elements()};
      offset = range.end;
      if (!tensor.block_matrix || range.length() == 0) continue;
      of_unit.push_back({i, tensor.shape.at(0), tensor.shape.at(1), range, owner_of(range, ranges_[unit])});
    }
  }
}

FlatRange MuonPlan::piece(std::size_t unit, const MuonMatrix& matrix, int rank) const {
  return common(matrix.range, ranges_.at(unit).at(static_cast<std::size_t>(rank)));
}

bool MuonPlan::in_place(std::size_t unit, const MuonMatrix& matrix) const {
  return piece(unit, matrix, matrix.owner) == matrix.range;
}

std::int64_t MuonPlan::staging(int rank) const {
  std::int64_t most = 0;
  for (std::size_t unit = 0; unit < matrices_.size(); ++unit) {
    std::int64_t floats = 0;
    for (const MuonMatrix& matrix : matrices_[unit]) {
      if (matrix.owner == rank && !in_place(unit, matrix)) floats += matrix.range.length();
    }
    most = std::max(most, floats);
  }
  return most;
}

std::int64_t MuonPlan::workspace(int rank) const {
  std::int64_t most = 0;
  for (const auto& unit : matrices_) {
    for (const MuonMatrix& matrix : unit) {
      if (matrix.owner == rank) most = std::max(most, Ops::orthogonalise_workspace(matrix.rows, matrix.cols));
    }
  }
  return staging(rank) + most;
}

std::uint64_t MuonPlan::floats_sent(int rank, const std::function<bool(int)>& counts) const {
  std::int64_t floats = 0;
  for (std::size_t unit = 0; unit < matrices_.size(); ++unit) {
    for (const MuonMatrix& matrix : matrices_[unit]) {
      if (matrix.owner != rank) {
        floats += counts(matrix.owner) ? piece(unit, matrix, rank).length() : 0;
        continue;
      }
      for (int other = 0; other < ranks(); ++other) {
        if (other != rank && counts(other)) floats += piece(unit, matrix, other).length();
      }
    }
  }
  return static_cast<std::uint64_t>(floats);
}

double muon_lr_scale(MuonAdjustLr adjust, std::int64_t rows, std::int64_t cols) {
  const auto r = static_cast<double>(rows), c = static_cast<double>(cols);
  return adjust == MuonAdjustLr::original ? std::sqrt(std::max(1.0, r / c)) : 0.2 * std::sqrt(std::max(r, c));
}

}  // namespace lamina
