// Groups of parameters by the names of their tensors: the notation of optim.groups.
//
// "PATTERN[:lr=X][:decay=Y], ...": in PATTERN, * stands for any characters, also none; everything else for itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

struct ParameterGroup {
  std::string pattern;
  std::optional<double> lr_factor;     // >= 0; times the schedule's learning rate
  std::optional<double> weight_decay;  // >= 0; in place of optim.weight_decay, also for norms and biases
  bool operator==(const ParameterGroup&) const = default;
};

// Empty text: no groups. Throws UsageError for anything that is not in the notation, a group that sets nothing, a
// setting given twice or below 0, and a pattern given twice.
[[nodiscard]] std::vector<ParameterGroup> parse_parameter_groups(std::string_view text);

[[nodiscard]] bool matches_pattern(std::string_view pattern, std::string_view name);

}  // namespace lamina
