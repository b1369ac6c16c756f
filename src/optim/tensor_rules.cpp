#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/config/parameter_groups.hpp>
#include <lamina/optim/optimizer.hpp>
#include <lamina/shard/tensor_pattern.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

struct Uses {
  std::size_t matched = 0, taken = 0;
};

void refuse_useless(const ParameterGroup& group, const Uses& uses) {
  if (uses.taken > 0) return;
  if (uses.matched == 0) refuse_unmatched_pattern("optim.groups", group.pattern);
  throw UsageError(one_line(fmt::format("optim.groups: the pattern '{}' has no effect", group.pattern),
                            "earlier patterns take every tensor it matches", "put it before them, or remove it"));
}

}  // namespace

TensorRules tensor_rules(const OptimSection& optim, std::span<const UnitSpec> units) {
  const std::vector<ParameterGroup> groups = parse_parameter_groups(optim.groups);
  std::vector<Uses> uses(groups.size());
  TensorRules rules;
  for (const UnitSpec& unit : units) {
    std::vector<TensorRule>& of_unit = rules.emplace_back();
    for (const TensorSpec& tensor : unit.tensors) {
      TensorRule& rule = of_unit.emplace_back(TensorRule{1, tensor.decay ? optim.weight_decay : 0});
      bool first = true;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        if (!matches_pattern(groups[i].pattern, tensor)) continue;
        ++uses[i].matched;
        if (!std::exchange(first, false)) continue;
        ++uses[i].taken;
        rule.lr_factor = groups[i].lr_factor.value_or(rule.lr_factor);
        rule.weight_decay = groups[i].weight_decay.value_or(rule.weight_decay);
      }
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) refuse_useless(groups[i], uses[i]);
  return rules;
}

}  // namespace lamina
