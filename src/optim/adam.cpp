#include "adam.hpp"

#include <cmath>

namespace lamina {

void AdamOptimizer::update_piece(Ops& ops, const Piece& piece, const UpdateStep& step, double weight_decay) const {
  AdamWStep hyper;
  hyper.lr = step.lr;
  hyper.beta1 = optim_.beta1;
  hyper.beta2 = optim_.beta2;
  hyper.eps = optim_.eps;
  hyper.weight_decay = weight_decay;
  hyper.bias1 = 1.0 - std::pow(optim_.beta1, static_cast<double>(step.step));
  hyper.bias2 = 1.0 - std::pow(optim_.beta2, static_cast<double>(step.step));
  hyper.grad_scale = step.grad_scale;
  if (decoupled_) {
    ops.adamw(piece.param, piece.exp_avg, piece.exp_avg_sq, piece.grad, hyper);
  } else {
    ops.adam(piece.param, piece.exp_avg, piece.exp_avg_sq, piece.grad, hyper);
  }
}

}  // namespace lamina
