#include "accumulate.hpp"

#include <algorithm>
#include <cstring>

namespace lamina {

namespace {
constexpr std::size_t chunk = 4096;  // floats: the target stays in the first-level cache while the sources pass by
}

void accumulate(std::span<float> target, std::span<const float* const> sources) {
  for (std::size_t begin = 0; begin < target.size(); begin += chunk) {
    const std::size_t count = std::min(chunk, target.size() - begin);
    float* __restrict out = target.data() + begin;
    for (const float* source : sources) {
      const float* __restrict in = source + begin;
      for (std::size_t i = 0; i < count; ++i) out[i] += in[i];
    }
  }
}

void sum_of(std::span<float> target, std::span<const float* const> sources) {
  if (target.empty()) return;
  std::memcpy(target.data(), sources.front(), target.size_bytes());
  accumulate(target, sources.subspan(1));
}

}  // namespace lamina
