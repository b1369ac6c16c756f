#include <algorithm>
#include <string>

#include <lamina/base/error.hpp>
#include <lamina/config/parameter_groups.hpp>
#include <lamina/shard/tensor_pattern.hpp>

#include <fmt/format.h>

namespace lamina {

bool matches_pattern(std::string_view pattern, const TensorSpec& tensor) {
  const auto fits = [&](const std::string& name) { return matches_pattern(pattern, name); };
  return fits(tensor.name) || std::ranges::any_of(tensor.aliases, fits);
}

void refuse_unmatched_pattern(std::string_view option, std::string_view pattern) {
  throw UsageError(one_line(fmt::format("{}: the pattern '{}' matches nothing", option, pattern),
                            "no tensor of the model has such a name", "lamina plan CONFIG --tensors lists the names"));
}

}  // namespace lamina
