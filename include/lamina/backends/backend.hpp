// The compute seam: a device and the operations that run on it, chosen by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <lamina/device/device.hpp>
#include <lamina/ops/ops.hpp>

namespace lamina {

struct Backend {
  std::unique_ptr<Device> device;  // declared first: outlives what was allocated for the ops
  std::unique_ptr<Ops> ops;
};

// name: "cpu" or "cuda"; threads: of this rank. Throws UsageError for an unknown name, for a backend that this build
// does not contain (it names the CMake option), and for a processor that lacks the instructions the kernels were
// compiled for.
[[nodiscard]] Backend make_backend(const std::string& name, std::int64_t threads);

}  // namespace lamina
