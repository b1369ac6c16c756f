#include "cpu_ops.hpp"

#include "openblas_setup.hpp"

namespace lamina::cpu {

std::unique_ptr<Ops> make_cpu_ops(int threads) {
  prepare_openblas(threads);
  return std::make_unique<CpuOps>(threads);
}

}  // namespace lamina::cpu
