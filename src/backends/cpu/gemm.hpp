// Matrix products on OpenBLAS.
#pragma once

#include <cstdint>

namespace lamina::cpu {

// An operand of a product: element (i, j) of the stored row-major matrix is data[i*stride + j]; `transposed` uses it as
// (j, i).
struct Factor {
  const float* data;
  std::int64_t stride;
  bool transposed = false;
};

// c[m, n] = alpha * a[m, k] * b[k, n] + beta * c. beta 0 ignores what c held, NaN included. Uses up to `threads`
// threads, one for products that are too small to share. Inside a parallel region it always uses the calling thread
// only.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Factor a, Factor b, float beta, float* c,
          std::int64_t c_stride, int threads);

// c[m, m] = alpha * a[m, k] * a^T + beta * c, symmetric: half the work of the product. Needs a symmetric c unless beta
// is 0. Threads as above.
void gram(std::int64_t m, std::int64_t k, float alpha, Factor a, float beta, float* c, int threads);

}  // namespace lamina::cpu
