// Checks that stay in every build type.
#pragma once

#include <source_location>
#include <string_view>

namespace lamina {

// Throws InternalError naming the place when `condition` is false. For promises between Lamina's own parts; bad input
// from outside throws UsageError, DataError or CheckpointError instead.
void require(bool condition, std::string_view what, std::source_location where = std::source_location::current());

}  // namespace lamina
