#include <algorithm>
#include <cmath>

#include <lamina/optim/adamw.hpp>

namespace lamina {

void add_gradient_squares(WeightStore& store, Ops& ops, ExactSum& sum) {
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    const OptimizerShard shard = store.optimizer_shard(unit);
    const FlatRange counted = store.counted_range(unit);
    ops.add_sum_of_squares(sum, shard.grad.subspan(static_cast<std::size_t>(counted.begin - shard.range.begin),
                                                   static_cast<std::size_t>(counted.length())));
  }
}

GradientScale gradient_scale(double sum_of_squares, std::int64_t tokens, double max_norm) {
  GradientScale result;
  if (tokens == 0) return result;
  const auto count = static_cast<double>(tokens);
  result.norm = std::sqrt(sum_of_squares) / count;
  if (max_norm > 0) result.clip = std::min(1.0, max_norm / (result.norm + 1e-6));
  result.scale = result.clip / count;
  return result;
}

void adamw_step(WeightStore& store, Ops& ops, const OptimSection& optim, std::int64_t step, double lr,
                double grad_scale) {
  AdamWStep hyper;
  hyper.lr = static_cast<float>(lr);
  hyper.beta1 = static_cast<float>(optim.beta1);
  hyper.beta2 = static_cast<float>(optim.beta2);
  hyper.eps = static_cast<float>(optim.eps);
  hyper.bias1 = 1.0 - std::pow(optim.beta1, static_cast<double>(step));
  hyper.bias2 = 1.0 - std::pow(optim.beta2, static_cast<double>(step));
  hyper.grad_scale = static_cast<float>(grad_scale);
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    const OptimizerShard shard = store.optimizer_shard(unit);
    const FlatLayout& layout = store.layout(unit);
    for (const Span& span : layout.spans(shard.range)) {
      const auto begin = static_cast<std::size_t>(span.flat_offset - shard.range.begin);
      const auto length = static_cast<std::size_t>(span.length);
      hyper.weight_decay = layout.unit().tensors[span.tensor].decay ? static_cast<float>(optim.weight_decay) : 0.0F;
      ops.adamw(shard.param.subspan(begin, length), shard.exp_avg.subspan(begin, length),
                shard.exp_avg_sq.subspan(begin, length), shard.grad.subspan(begin, length), hyper);
    }
    store.publish(unit);
  }
}

}  // namespace lamina
