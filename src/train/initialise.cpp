#include <algorithm>

#include <lamina/model/init_weights.hpp>
#include <lamina/train/initialise.hpp>

namespace lamina {

void publish_all(WeightStore& store) {
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) store.publish(unit);
}

void begin_average(WeightStore& store) {
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    const OptimizerShard shard = store.optimizer_shard(unit);
    if (!shard.ema.empty()) std::ranges::copy(shard.param, shard.ema.begin());
  }
}

void initialise_randomly(const ModelPlan& plan, std::uint64_t seed, WeightStore& store) {
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    const OptimizerShard shard = store.optimizer_shard(unit);
    const FlatLayout& layout = store.layout(unit);
    for (const Span& span : layout.spans(shard.range)) {
      init_tensor(plan.config, seed, layout.unit().tensors[span.tensor], span.tensor_offset,
                  shard.param.subspan(static_cast<std::size_t>(span.flat_offset - shard.range.begin),
                                      static_cast<std::size_t>(span.length)));
    }
  }
  begin_average(store);
}

}  // namespace lamina
