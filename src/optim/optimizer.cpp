#include <cmath>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/optim/optimizer.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

// Adam and AdamW: they differ in where the decay enters.
class AdamOptimizer final : public Optimizer {
 public:
  AdamOptimizer(TensorRules rules, const OptimSection& optim)
      : Optimizer(std::move(rules)), optim_(optim), decoupled_(optim.kind == OptimizerKind::adamw) {}

 private:
  void update_piece(Ops& ops, const Piece& piece, const UpdateStep& step, double weight_decay) const override {
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

  OptimSection optim_;
  bool decoupled_;
};

class SgdOptimizer final : public Optimizer {
 public:
  SgdOptimizer(TensorRules rules, const OptimSection& optim)
      : Optimizer(std::move(rules)), momentum_(optim.momentum), nesterov_(optim.nesterov) {}

 private:
  void update_piece(Ops& ops, const Piece& piece, const UpdateStep& step, double weight_decay) const override {
    ops.sgd(piece.param, piece.exp_avg, piece.grad, {step.lr, momentum_, weight_decay, nesterov_, step.grad_scale});
  }

  double momentum_;
  bool nesterov_;
};

class LionOptimizer final : public Optimizer {
 public:
  LionOptimizer(TensorRules rules, const OptimSection& optim)
      : Optimizer(std::move(rules)), beta1_(optim.beta1), beta2_(optim.beta2) {}

 private:
  void update_piece(Ops& ops, const Piece& piece, const UpdateStep& step, double weight_decay) const override {
    ops.lion(piece.param, piece.exp_avg, piece.grad, {step.lr, beta1_, beta2_, weight_decay, step.grad_scale});
  }

  double beta1_, beta2_;
};

}  // namespace

std::string_view name_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::adam:
      return "adam";
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::lion:
      return "lion";
  }
  return "?";
}

int moment_count(const OptimSection& optim) {
  if (optim.kind == OptimizerKind::sgd) return optim.momentum == 0 ? 0 : 1;
  return optim.kind == OptimizerKind::lion ? 1 : 2;
}

namespace {

void publish(WeightStore& store, std::size_t unit) {
  try {
    store.publish(unit);
  } catch (const PeerError& error) {
    throw PeerError(fmt::format("publish of {}: {}", store.layout(unit).unit().name, error.what()));
  }
}

}  // namespace

void Optimizer::update(WeightStore& store, Ops& ops, const UpdateStep& step) const {
  require(store.unit_count() == rules_.size(), "the optimizer was made for the store's units");
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    const OptimizerShard shard = store.optimizer_shard(unit);
    for (const Span& span : store.layout(unit).spans(shard.range)) {
      const auto begin = static_cast<std::size_t>(span.flat_offset - shard.range.begin);
      const auto length = static_cast<std::size_t>(span.length);
      const auto cut = [&](std::span<float> whole) { return whole.empty() ? whole : whole.subspan(begin, length); };
      const TensorRule& rule = rules_[unit].at(span.tensor);
      UpdateStep own = step;
      own.lr *= rule.lr_factor;
      update_piece(ops, {cut(shard.param), cut(shard.exp_avg), cut(shard.exp_avg_sq), cut(shard.grad)}, own,
                   rule.weight_decay);
    }
    publish(store, unit);
  }
}

std::unique_ptr<Optimizer> make_optimizer(const OptimSection& optim, std::span<const UnitSpec> units) {
  TensorRules rules = tensor_rules(optim, units);
  switch (optim.kind) {
    case OptimizerKind::adamw:
    case OptimizerKind::adam:
      return std::make_unique<AdamOptimizer>(std::move(rules), optim);
    case OptimizerKind::sgd:
      return std::make_unique<SgdOptimizer>(std::move(rules), optim);
    case OptimizerKind::lion:
      return std::make_unique<LionOptimizer>(std::move(rules), optim);
  }
  throw InternalError("an optimizer kind without a class");
}

}  // namespace lamina
