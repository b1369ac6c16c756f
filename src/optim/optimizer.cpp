#include "adam.hpp"
#include "muon.hpp"

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/optim/optimizer.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

class SgdOptimizer final : public Optimizer {
 public:
  SgdOptimizer(TensorRules rules, const OptimSection& optim)
      : Optimizer(std::move(rules), optim), momentum_(optim.momentum), nesterov_(optim.nesterov) {}

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
      : Optimizer(std::move(rules), optim), beta1_(optim.beta1), beta2_(optim.beta2) {}

 private:
  void update_piece(Ops& ops, const Piece& piece, const UpdateStep& step, double weight_decay) const override {
    ops.lion(piece.param, piece.exp_avg, piece.grad, {step.lr, beta1_, beta2_, weight_decay, step.grad_scale});
  }

  double beta1_, beta2_;
};

}  // namespace

void Optimizer::for_pieces(const FlatLayout& layout, std::size_t unit, const OptimizerShard& shard,
                           const UpdateStep& step, const UsePiece& use) const {
  for (const Span& span : layout.spans(shard.range)) {
    const auto begin = static_cast<std::size_t>(span.flat_offset - shard.range.begin);
    const auto length = static_cast<std::size_t>(span.length);
    const auto cut = [&](std::span<float> whole) { return whole.empty() ? whole : whole.subspan(begin, length); };
    const TensorRule& rule = rules_[unit].at(span.tensor);
    UpdateStep own = step;
    own.lr *= rule.lr_factor;
    const FlatRange part{span.flat_offset, span.flat_offset + span.length};
    use(layout.unit().tensors[span.tensor],
        {cut(shard.param), cut(shard.exp_avg), shard.exp_avg_sq_of(part), cut(shard.grad)}, own, rule.weight_decay);
  }
}

void Optimizer::update_unit(WeightStore& store, Ops& ops, std::size_t unit, const OptimizerShard& shard,
                            const UpdateStep& step) const {
  for_pieces(store.layout(unit), unit, shard, step,
             [&](const TensorSpec&, const Piece& piece, const UpdateStep& own, double weight_decay) {
               update_piece(ops, piece, own, weight_decay);
             });
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
    update_unit(store, ops, unit, shard, step);
    if (!shard.ema.empty()) ops.ema(shard.ema, shard.param, ema_decay_);
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
    case OptimizerKind::muon:
      return std::make_unique<MuonOptimizer>(std::move(rules), optim);
  }
  throw InternalError("an optimizer kind without a class");
}

}  // namespace lamina
