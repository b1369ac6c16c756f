#include <lamina/model/loaded_model.hpp>
#include <lamina/shard/flat_layout.hpp>

namespace lamina {

LoadedModel allocate_model(const ModelConfig& config, Device& device) {
  LoadedModel model{.plan = make_model_plan(config), .units = {}};
  for (const UnitSpec& unit : model.plan.units) {
    const auto elements = static_cast<std::size_t>(FlatLayout(unit, 1).padded_elements());
    model.units.push_back(device.allocate_floats(elements, "weights of " + unit.name));
  }
  return model;
}

}  // namespace lamina
