#include "local_model.hpp"

#include <lamina/base/log.hpp>
#include <lamina/base/slow_notice.hpp>
#include <lamina/checkpoint/pretrained_reader.hpp>
#include <lamina/model/model_config.hpp>

namespace lamina {

LoadedModel load_model(const std::filesystem::path& folder, Device& device) {
  ModelConfig config = read_model_config(folder);
  for (const std::string& warning : config.warnings) log_warn(warning);
  config.eos_ids = read_generation_ends(folder, config);
  LoadedModel model = allocate_model(config, device);
  const SlowNotice notice("loading " + folder.string());
  PretrainedReader reader(folder, model.plan.units);
  for (std::size_t unit = 0; unit < model.units.size(); ++unit) {
    const FlatLayout layout(model.plan.units[unit], 1);
    reader.read(layout, {0, layout.padded_elements()},
                {model.units[unit].floats(), static_cast<std::size_t>(layout.padded_elements())});
  }
  return model;
}

}  // namespace lamina
