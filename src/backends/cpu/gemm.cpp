#include "gemm.hpp"

#include "openblas_library.hpp"

#include <algorithm>
#include <limits>

#include <lamina/base/check.hpp>

#include <omp.h>

namespace lamina::cpu {
namespace {

// Sharing a product of fewer multiply-adds costs more than it brings (measured: 64^3 on two threads runs at a fifth of
// its speed on one).
constexpr double smallest_shared_product = 5e6;

blasint to_blas(std::int64_t n) {
  require(n <= std::numeric_limits<blasint>::max(), "a matrix dimension exceeds the range of this BLAS");
  return static_cast<blasint>(n);
}

// Sets the calling thread's OpenMP team size, which is what an OpenMP build of OpenBLAS follows, and restores it.
class ThreadCountScope {
 public:
  explicit ThreadCountScope(int threads) : before_(omp_get_max_threads()), changed_(threads != before_) {
    if (changed_) omp_set_num_threads(threads);
  }
  ~ThreadCountScope() {
    if (changed_) omp_set_num_threads(before_);
  }
  ThreadCountScope(const ThreadCountScope&) = delete;
  ThreadCountScope& operator=(const ThreadCountScope&) = delete;

 private:
  int before_;
  bool changed_;
};

// Threads for a product of so many multiply-adds.
int team_for(double products, int threads) {
  return threads > 1 && products >= smallest_shared_product && omp_in_parallel() == 0 ? threads : 1;
}

// BLAS wants strides of at least one row's length even where there is only one row.
blasint stride_of(const Factor& f, std::int64_t rows, std::int64_t cols) {
  return to_blas(std::max<std::int64_t>({f.stride, f.transposed ? rows : cols, 1}));
}

// Copies the upper triangle to the lower, in tiles that stay in the cache.
void mirror_upper(float* c, std::int64_t m) {
  constexpr std::int64_t tile = 32;
  for (std::int64_t row_tile = 0; row_tile < m; row_tile += tile) {
    for (std::int64_t col_tile = 0; col_tile <= row_tile; col_tile += tile) {
      for (std::int64_t i = row_tile; i < std::min(m, row_tile + tile); ++i) {
        for (std::int64_t j = col_tile; j < std::min(i, col_tile + tile); ++j) c[i * m + j] = c[j * m + i];
      }
    }
  }
}

}  // namespace

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Factor a, Factor b, float beta, float* c,
          std::int64_t c_stride, int threads) {
  const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const ThreadCountScope scope(team_for(products, threads));
  openblas().sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans,
                   to_blas(m), to_blas(n), to_blas(k), alpha, a.data, stride_of(a, m, k), b.data, stride_of(b, k, n),
                   beta, c, to_blas(std::max<std::int64_t>({c_stride, n, 1})));
}

void gram(std::int64_t m, std::int64_t k, float alpha, Factor a, float beta, float* c, int threads) {
  const double products = 0.5 * static_cast<double>(m) * static_cast<double>(m) * static_cast<double>(k);
  const ThreadCountScope scope(team_for(products, threads));
  openblas().ssyrk(CblasRowMajor, CblasUpper, a.transposed ? CblasTrans : CblasNoTrans, to_blas(m), to_blas(k), alpha,
                   a.data, stride_of(a, m, k), beta, c, to_blas(m));
  mirror_upper(c, m);
}

}  // namespace lamina::cpu
