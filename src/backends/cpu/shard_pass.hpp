// One pass over the elements of shards, for optimizers.
#pragma once

#include "lanes.hpp"
#include "parallel.hpp"

#include <cstddef>
#include <cstdint>

namespace lamina::cpu {

inline Float8 constant(double x) { return splat(static_cast<float>(x)); }

// One pass over `count` elements of `streams` arrays: body(io, i) computes a group from offset i on. Every element goes
// through the same instructions wherever a shard or a thread begins.
template <typename Body>
void for_shard(int threads, std::size_t count, std::int64_t streams, Body&& body) {
  constexpr std::int64_t grain = 4096;
  const auto elements = static_cast<std::int64_t>(count);
  parallel_ranges(threads, elements, elements * streams, grain, [&](std::int64_t first, std::int64_t last) {
    for_groups(last - first, [&](auto io, std::int64_t i) { body(io, first + i); });
  });
}

}  // namespace lamina::cpu
