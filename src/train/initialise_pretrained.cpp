#include <lamina/checkpoint/pretrained_reader.hpp>
#include <lamina/train/initialise.hpp>

namespace lamina {

void initialise_from_pretrained(const std::filesystem::path& model_folder, const ModelPlan& plan, WeightStore& store) {
  PretrainedReader reader(model_folder, plan.units);
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    const OptimizerShard shard = store.optimizer_shard(unit);
    reader.read(store.layout(unit), shard.range, shard.param);
  }
  begin_average(store);
}

}  // namespace lamina
