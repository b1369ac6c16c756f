#include "../backend_factories.hpp"
#include "cpu_device.hpp"
#include "cpu_features.hpp"
#include "cpu_ops.hpp"

#include <lamina/base/build_info.hpp>
#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina::cpu {

Backend make_backend(std::int64_t threads) {
  constexpr std::int64_t most_threads = 4096;
  if (threads < 1 || threads > most_threads) {
    throw UsageError(one_line(fmt::format("cannot compute with {} threads", threads),
                              fmt::format("a rank has 1 to {} of them", most_threads), "set compute.threads"));
  }
  refuse_missing_features(missing_features(compiled_features), build_info().cpu_arch);
  return {std::make_unique<CpuDevice>(), make_cpu_ops(static_cast<int>(threads))};
}

}  // namespace lamina::cpu
