// Strict both ways: what is wanted is there, and nothing else is.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <lamina/shard/unit_spec.hpp>

namespace lamina {

// "a, b, c and 7 more"
[[nodiscard]] std::string join_names(std::span<const std::string> names);

// "[2, 3]"
[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);

// What differs between the tensors of `units` and the stored ones (names, shapes, ties), in words; empty when nothing
// does.
[[nodiscard]] std::string compare_tensors(std::span<const UnitSpec> units, std::span<const TensorSpec> stored);

}  // namespace lamina
