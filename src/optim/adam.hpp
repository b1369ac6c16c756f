// Adam and AdamW: they differ in where the decay enters.
#pragma once

#include <lamina/optim/optimizer.hpp>

namespace lamina {

class AdamOptimizer : public Optimizer {
 public:
  // optim.kind adam: the decay enters the gradient; otherwise it is decoupled.
  AdamOptimizer(TensorRules rules, const OptimSection& optim)
      : Optimizer(std::move(rules), optim), optim_(optim), decoupled_(optim.kind != OptimizerKind::adam) {}

 protected:
  void update_piece(Ops& ops, const Piece& piece, const UpdateStep& step, double weight_decay) const override;
  [[nodiscard]] const OptimSection& options() const { return optim_; }

 private:
  OptimSection optim_;
  bool decoupled_;
};

}  // namespace lamina
