// The CUDA backend's place in a build without CUDA.
#include "../backend_factories.hpp"

#include <lamina/base/error.hpp>

namespace lamina::cuda {

Backend make_backend(std::int64_t /*threads*/) {
  throw UsageError(one_line("cannot use compute backend \"cuda\"", "this program was built without CUDA support",
                            "configure with -DLAMINA_CUDA=ON, or set compute.backend = cpu"));
}

}  // namespace lamina::cuda
