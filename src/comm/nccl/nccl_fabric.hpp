// The NCCL fabric's registry line. The fabric itself comes with the CUDA backend.
#pragma once

#include <lamina/base/error.hpp>

namespace lamina {

[[noreturn]] inline void refuse_nccl_fabric() {
  throw UsageError(one_line("the nccl fabric is not available", "this program was built without CUDA",
                            "configure with -DLAMINA_CUDA=ON, or use compute.backend = cpu"));
}

}  // namespace lamina
