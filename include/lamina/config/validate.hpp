// Rules that a config must keep before anything is opened or started.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <lamina/config/run_config.hpp>

namespace lamina {

// Whether there must be data: a plan can do without.
enum class NeedsData { yes, no };

// All broken rules at once, each "problem: why; what to do"; empty when the config is sound. Checks single values, how
// they fit together, and how they fit `world_size` ranks (>= 1).
[[nodiscard]] std::vector<std::string> config_problems(const RunConfig& config, std::int64_t world_size,
                                                       NeedsData needs_data = NeedsData::yes);

// Throws UsageError with all problems, one a line, if there are any.
void check_config(const RunConfig& config, std::int64_t world_size, NeedsData needs_data = NeedsData::yes);

}  // namespace lamina
