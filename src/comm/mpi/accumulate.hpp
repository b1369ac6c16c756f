// The additions of a reduction.
#pragma once

#include <cstddef>
#include <span>

namespace lamina {

// target[i] = ((target[i] + sources[0][i]) + sources[1][i]) + ...
void accumulate(std::span<float> target, std::span<const float* const> sources);

// target[i] = (sources[0][i] + sources[1][i]) + ...; at least one source.
void sum_of(std::span<float> target, std::span<const float* const> sources);

}  // namespace lamina
