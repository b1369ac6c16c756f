// One line a backend: how the registry makes it.
#pragma once

#include <cstdint>

#include <lamina/backends/backend.hpp>

namespace lamina {

namespace cpu {
// Throws UsageError when this processor lacks an instruction set that the kernels were compiled for, or threads < 1.
[[nodiscard]] Backend make_backend(std::int64_t threads);
}  // namespace cpu

namespace cuda {
// Throws UsageError in a build without CUDA.
[[nodiscard]] Backend make_backend(std::int64_t threads);
}  // namespace cuda

}  // namespace lamina
