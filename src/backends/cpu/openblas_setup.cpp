#include "openblas_setup.hpp"

#include "openblas_library.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <lamina/base/error.hpp>
#include <lamina/base/log.hpp>

#include <fmt/format.h>
#include <stdlib.h>

namespace lamina::cpu {
namespace {

constexpr const char* kernel_choice = "OPENBLAS_CORETYPE";

// The best kernels for this processor, or null when OpenBLAS's own choice cannot be improved by features alone.
const char* kernels_by_features() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  if (avx2 && avx512) return "SkylakeX";
  if (avx2) return "Haswell";
#endif
  return nullptr;
}

// Kernels without fused multiply-add.
bool outdated(std::string_view kernels) {
  constexpr std::array<std::string_view, 14> names = {"Prescott", "Core2",   "Penryn",       "Dunnington", "Nehalem",
                                                      "Athlon",   "Opteron", "Opteron_SSE3", "Barcelona",  "Bobcat",
                                                      "Atom",     "Nano",    "Sandybridge",  "Generic"};
  return std::find(names.begin(), names.end(), kernels) != names.end();
}

void choose_kernels() {
  const char* better = kernels_by_features();
  const std::string before = openblas_kernels();
  if (better == nullptr || !outdated(before) || getenv(kernel_choice) != nullptr) return;
  const OpenBlas& library = openblas();
  if (library.dynamic_init != nullptr && library.dynamic_quit != nullptr) {
    setenv(kernel_choice, better, 1);
    library.dynamic_quit();
    library.dynamic_init();
    unsetenv(kernel_choice);
  }
  if (!outdated(openblas_kernels())) {
    log_debug(fmt::format("OpenBLAS does not know this processor and chose its {} kernels; using {}", before,
                          openblas_kernels()));
    return;
  }
  log_warn(one_line(fmt::format("matrix products will be slow: OpenBLAS chose its {} kernels", before),
                    "it does not know this processor",
                    fmt::format("set {}={} before starting", kernel_choice, better)));
}

}  // namespace

std::string openblas_kernels() { return openblas().get_corename(); }

void prepare_openblas(int threads) {
  const OpenBlas& library = load_openblas(threads);
  choose_kernels();
  if (library.get_parallel() == OPENBLAS_OPENMP) return;
  if (threads > 1) {
    throw UsageError(one_line(fmt::format("cannot compute with {} threads", threads),
                              "this OpenBLAS was not built with OpenMP",
                              "install the openmp flavour (libopenblas-openmp-dev), or set compute.threads = 1"));
  }
  library.set_num_threads(1);
}

}  // namespace lamina::cpu
