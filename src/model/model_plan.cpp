#include "tensor_map.hpp"

#include <algorithm>

#include <lamina/model/model_plan.hpp>

#include <fmt/format.h>

namespace lamina {
namespace {

UnitSpec unit_of(std::string name, const std::vector<NamedTensor>& tensors) {
  UnitSpec unit{.name = std::move(name), .tensors = {}};
  for (const NamedTensor& tensor : tensors) unit.tensors.push_back(tensor.spec);
  return unit;
}

// Keys a query sees on average, as continuous triangle: seq_len / 2 without a window.
double visible_keys(std::int64_t seq_len, std::int64_t window) {
  const auto s = static_cast<double>(seq_len);
  const double w = window > 0 ? static_cast<double>(std::min(window, seq_len)) : s;
  return w - w * w / (2 * s);
}

}  // namespace

ModelPlan make_model_plan(const ModelConfig& config) {
  ModelPlan plan{.config = config, .units = {}, .stages = {}};
  if (!config.tied_head) plan.units.push_back(unit_of("embedding", embedding_unit_tensors(config)));
  const std::size_t first_block = plan.units.size();
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.units.push_back(unit_of(fmt::format("layers.{}", layer), block_unit_tensors(config, layer)));
  }
  const std::size_t head = plan.units.size();
  plan.units.push_back(unit_of("head", head_unit_tensors(config)));

  plan.stages.push_back({StageKind::embedding, config.tied_head ? head : 0, 0, false});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.stages.push_back({StageKind::block, first_block + static_cast<std::size_t>(layer), layer, true});
  }
  plan.stages.push_back({StageKind::head, head, 0, true});
  return plan;
}

double flops_per_token(const ModelConfig& config, std::int64_t seq_len) {
  const auto h = static_cast<double>(config.hidden), f = static_cast<double>(config.intermediate);
  const auto q = static_cast<double>(config.q_size()), kv = static_cast<double>(config.kv_size());
  const double mlp_matrices = config.activation == ActivationKind::swiglu ? 3 : 2;
  const double block = h * (q + 2 * kv) + q * h + mlp_matrices * h * f;
  const double head = h * static_cast<double>(config.vocab_size);
  double attention = 0;  // scores and weighted values, forward and twice backward: 12 a visible key and channel
  for (const std::int64_t window : config.window) attention += 12 * q * visible_keys(seq_len, window);
  return 6 * (static_cast<double>(config.layers) * block + head) + attention;
}

}  // namespace lamina
