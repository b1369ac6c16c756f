// Options that choose tensors by patterns of their names (config/parameter_groups.hpp).
#pragma once

#include <string_view>

#include <lamina/shard/unit_spec.hpp>

namespace lamina {

// Whether the pattern fits the tensor's name or one of its aliases.
[[nodiscard]] bool matches_pattern(std::string_view pattern, const TensorSpec& tensor);

// Throws UsageError: no tensor of the model has a name that `pattern`, of `option`, fits.
[[noreturn]] void refuse_unmatched_pattern(std::string_view option, std::string_view pattern);

}  // namespace lamina
