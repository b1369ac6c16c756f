// The largest sizes a config.json may name. Beyond them lies a damaged file, not a model; below them no product of two
// sizes overflows 64 bits.
#pragma once

#include <cstdint>
#include <limits>

namespace lamina::config_limits {

inline constexpr std::int64_t vocab = std::int64_t{1} << 28;
inline constexpr std::int64_t hidden = std::int64_t{1} << 20;
inline constexpr std::int64_t intermediate = std::int64_t{1} << 24;
inline constexpr std::int64_t layers = 1 << 14;
inline constexpr std::int64_t heads = 1 << 14;
inline constexpr std::int64_t head_dim = 1 << 14;
inline constexpr std::int64_t positions = std::numeric_limits<std::int32_t>::max();

}  // namespace lamina::config_limits
