#include "tensor_map.hpp"

#include <algorithm>
#include <charconv>

#include <lamina/base/error.hpp>
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

namespace {

struct Module {
  StageKind kind = StageKind::block;
  std::int64_t layer = 0;
  UnitSpec tensors;
};

std::vector<Module> modules_of(const ModelConfig& config) {
  std::vector<Module> modules;
  if (!config.tied_head)
    modules.push_back({StageKind::embedding, 0, unit_of("embedding", embedding_unit_tensors(config))});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    modules.push_back(
        {StageKind::block, layer, unit_of(fmt::format("layers.{}", layer), block_unit_tensors(config, layer))});
  }
  modules.push_back({StageKind::head, 0, unit_of("head", head_unit_tensors(config))});
  return modules;
}

bool belongs_to_root(const Module& module, const UnitRule& rule) {
  if (rule.kind == UnitKind::block) return module.kind != StageKind::block;
  return rule.kind == UnitKind::size && module.tensors.elements() < rule.amount;
}

// The name of a unit of the blocks first .. last.
std::string blocks_name(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("layers.{}", first) : fmt::format("layers.{}-{}", first, last);
}

// Appends the module to the unit; returns where it begins there.
std::int64_t append(UnitSpec& unit, const Module& module) {
  const std::int64_t offset = unit.elements();
  unit.tensors.insert(unit.tensors.end(), module.tensors.tensors.begin(), module.tensors.tensors.end());
  return offset;
}

}  // namespace

UnitRule parse_unit_rule(const std::string& text) {
  const auto wrong = [&](const char* why) {
    return UsageError(
        one_line(fmt::format("parallel.units is '{}'", text), why, "write layer, block, size:N or layers:K"));
  };
  if (text == "layer") return {UnitKind::layer, 0};
  if (text == "block") return {UnitKind::block, 0};
  UnitRule rule;
  std::size_t number = 0;
  if (text.starts_with("size:")) {
    rule.kind = UnitKind::size;
    number = 5;
  } else if (text.starts_with("layers:")) {
    rule.kind = UnitKind::layers;
    number = 7;
  } else {
    throw wrong("it names no way to make units");
  }
  const auto [end, error] = std::from_chars(text.data() + number, text.data() + text.size(), rule.amount);
  if (error != std::errc() || end != text.data() + text.size() || rule.amount < 1)
    throw wrong("its number is not a positive integer");
  return rule;
}

ModelPlan make_model_plan(const ModelConfig& config, const UnitRule& rule) {
  ModelPlan plan{.config = config, .units = {}, .stages = {}, .root = {}};
  UnitSpec root{.name = "root", .tensors = {}};
  std::vector<std::size_t> in_root;  // stages whose unit becomes the root's number
  std::int64_t blocks_in_unit = 0;
  for (const Module& module : modules_of(config)) {
    Stage stage{module.kind, 0, 0, module.layer, module.kind != StageKind::embedding};
    if (belongs_to_root(module, rule)) {
      stage.offset = append(root, module);
      in_root.push_back(plan.stages.size());
    } else {
      const bool joins =
          rule.kind == UnitKind::layers && module.kind == StageKind::block && blocks_in_unit % rule.amount != 0;
      if (!joins) plan.units.push_back({.name = module.tensors.name, .tensors = {}});
      if (joins) plan.units.back().name = blocks_name(module.layer - blocks_in_unit % rule.amount, module.layer);
      stage.unit = plan.units.size() - 1;
      stage.offset = append(plan.units.back(), module);
    }
    if (module.kind == StageKind::block) ++blocks_in_unit;
    plan.stages.push_back(stage);
  }
  if (!in_root.empty()) {
    plan.root = plan.units.size();
    plan.units.push_back(std::move(root));
    for (const std::size_t stage : in_root) plan.stages[stage].unit = *plan.root;
  }
  if (config.tied_head) {
    const Stage& head = plan.stages.back();
    plan.stages.insert(plan.stages.begin(), Stage{StageKind::embedding, head.unit, head.offset, 0, false});
  }
  return plan;
}

double forward_flops_per_token(const ModelConfig& config, const Stage& stage, std::int64_t seq_len) {
  const auto h = static_cast<double>(config.hidden), f = static_cast<double>(config.intermediate);
  const auto q = static_cast<double>(config.q_size()), kv = static_cast<double>(config.kv_size());
  if (stage.kind == StageKind::embedding) return 0;
  if (stage.kind == StageKind::head) return 2 * h * static_cast<double>(config.vocab_size);
  const double mlp_matrices = config.activation == ActivationKind::swiglu ? 3 : 2;
  const double matrices = h * (q + 2 * kv) + q * h + mlp_matrices * h * f;
  const std::int64_t window = config.window.at(static_cast<std::size_t>(stage.layer));
  return 2 * matrices + 4 * q * visible_keys(seq_len, window);  // scores and weighted values
}

double flops_per_token(const ModelConfig& config, std::int64_t seq_len) {
  double forward = forward_flops_per_token(config, {.kind = StageKind::head}, seq_len);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    forward += forward_flops_per_token(config, {.kind = StageKind::block, .layer = layer}, seq_len);
  }
  return 3 * forward;  // the backward of a product is two products
}

}  // namespace lamina
