#include "cpu_ops.hpp"

#include "gemm.hpp"

namespace lamina::cpu {

std::unique_ptr<Ops> make_cpu_ops(int threads) {
  prepare_gemm(threads);
  return std::make_unique<CpuOps>(threads);
}

}  // namespace lamina::cpu
