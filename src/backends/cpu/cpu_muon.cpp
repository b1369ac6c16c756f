// Muon's three passes: the direction and the update over shards, the orthogonalisation of whole matrices.
#include "cpu_ops.hpp"
#include "gemm.hpp"
#include "lanes.hpp"
#include "shard_pass.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lamina::cpu {
namespace {

// Of Jordan's publication: chosen for the steepest slope at zero, so that five iterations bring every singular value
// into about 0.7 .. 1.2.
constexpr float linear = 3.4445F, cubic = -4.7750F, quintic = 2.0315F;
constexpr int iterations = 5;
constexpr float least_norm = 1e-7F;

// x / max(|x|, least_norm) into y. The sum of squares is exact: it does not depend on how threads share it.
void normalise(Ops& ops, int threads, TensorView y, ConstTensorView x) {
  const auto size = static_cast<std::size_t>(x.size());
  ExactSum squares;
  ops.add_sum_of_squares(squares, {x.data, size});
  const Float8 divisor = constant(std::max(static_cast<float>(std::sqrt(squares.value())), least_norm));
  const float* in = x.data;
  float* out = y.data;
  for_shard(threads, size, 2, [=](auto io, std::int64_t i) { io.store(out + i, io.load(in + i) / divisor); });
}

// The polynomial in the gram matrix of the shorter side: with G = X X^T (or X^T X when X is tall),
// P = linear I + cubic G + quintic G G, and the iterate becomes P X (or X P). All are row-major and contiguous.
class NewtonSchulz {
 public:
  NewtonSchulz(std::int64_t rows, std::int64_t cols, float* workspace, int threads)
      : rows_(rows),
        cols_(cols),
        side_(std::min(rows, cols)),
        threads_(threads),
        gram_(workspace),
        polynomial_(workspace + side_ * side_) {}

  void iterate(const float* x, float* next) const {
    const bool tall = rows_ > cols_;
    gram(side_, std::max(rows_, cols_), 1.0F, {x, cols_, tall}, 0.0F, gram_, threads_);
    std::copy_n(gram_, side_ * side_, polynomial_);
    gram(side_, side_, quintic, {gram_, side_}, cubic, polynomial_, threads_);  // G G = G G^T
    for (std::int64_t i = 0; i < side_; ++i) polynomial_[i * side_ + i] += linear;
    const Factor p{polynomial_, side_}, iterate{x, cols_};
    gemm(rows_, cols_, side_, 1.0F, tall ? iterate : p, tall ? p : iterate, 0.0F, next, cols_, threads_);
  }

 private:
  std::int64_t rows_, cols_, side_;
  int threads_;
  float *gram_, *polynomial_;
};

}  // namespace

void CpuOps::do_muon_direction(std::span<float> grad, std::span<float> momentum_buffer, const MuonDirection& step) {
  const Float8 grad_scale = constant(step.grad_scale);
  const Float8 momentum = constant(step.momentum);
  const Float8 rest = constant(1 - step.momentum);
  float* g = grad.data();
  float* m = momentum_buffer.data();
  for_shard(threads_, grad.size(), 2, [=, nesterov = step.nesterov](auto io, std::int64_t i) {
    const Float8 gradient = io.load(g + i) * grad_scale;
    const Float8 old = io.load(m + i);
    const Float8 moment = old + rest * (gradient - old);
    io.store(m + i, moment);
    io.store(g + i, nesterov ? gradient + momentum * (moment - gradient) : moment);
  });
}

void CpuOps::do_muon_update(std::span<float> param, std::span<const float> direction, const MuonUpdate& step) {
  const Float8 keep = constant(1 - step.lr * step.weight_decay);
  const Float8 size = constant(step.lr * step.lr_scale);
  float* p = param.data();
  const float* d = direction.data();
  for_shard(threads_, param.size(), 2,
            [=](auto io, std::int64_t i) { io.store(p + i, io.load(p + i) * keep - size * io.load(d + i)); });
}

void CpuOps::do_orthogonalise(TensorView x, std::span<float> workspace) {
  // An odd number of iterations between two places: the first reads the normalised copy, the last writes x.
  static_assert(iterations % 2 == 1);
  float* from = workspace.data();
  float* to = x.data;
  const NewtonSchulz newton_schulz(x.rows, x.cols, workspace.data() + x.size(), threads_);
  normalise(*this, threads_, {from, x.rows, x.cols}, x);
  for (int i = 0; i < iterations; ++i) {
    newton_schulz.iterate(from, to);
    std::swap(from, to);
  }
}

}  // namespace lamina::cpu
