#include "cpu_features.hpp"

#include <lamina/base/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lamina::cpu {
namespace {

// The compiler's builtin takes literals only. Features without a line here are those of the compiler's baseline.
bool processor_has([[maybe_unused]] std::string_view feature) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (feature == "avx") return __builtin_cpu_supports("avx") != 0;
  if (feature == "avx2") return __builtin_cpu_supports("avx2") != 0;
  if (feature == "fma") return __builtin_cpu_supports("fma") != 0;
  if (feature == "bmi") return __builtin_cpu_supports("bmi") != 0;
  if (feature == "bmi2") return __builtin_cpu_supports("bmi2") != 0;
  if (feature == "avx512f") return __builtin_cpu_supports("avx512f") != 0;
  if (feature == "avx512vl") return __builtin_cpu_supports("avx512vl") != 0;
  if (feature == "avx512bw") return __builtin_cpu_supports("avx512bw") != 0;
  if (feature == "avx512dq") return __builtin_cpu_supports("avx512dq") != 0;
  return false;
#else
  return true;
#endif
}

}  // namespace

std::vector<std::string> missing_features(std::span<const Feature> needed) {
  std::vector<std::string> missing;
  for (const Feature& feature : needed) {
    if (feature.compiled_for && !processor_has(feature.name)) missing.emplace_back(feature.name);
  }
  return missing;
}

void refuse_missing_features(std::span<const std::string> missing, std::string_view arch) {
  if (missing.empty()) return;
  throw UsageError(one_line(
      "cannot use compute backend \"cpu\"",
      fmt::format("its kernels were compiled for {} and this processor lacks {}", arch, fmt::join(missing, ", ")),
      "build for this processor: configure with -DLAMINA_CPU_ARCH=x86-64 (any x86), x86-64-v3 (AVX2) or native"));
}

}  // namespace lamina::cpu
