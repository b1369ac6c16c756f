// Operations on shards: the optimizer's update and the sum of squares for the gradient norm.
#include "cpu_ops.hpp"
#include "lanes.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

namespace lamina::cpu {
namespace {

Float8 root8(Float8 x) {
#if defined(__AVX__)
  return _mm256_sqrt_ps(x);
#else
  for (int i = 0; i < width; ++i) x[i] = std::sqrt(x[i]);
  return x;
#endif
}

using Double4 = double __attribute__((vector_size(32)));

Double4 widen(const float* p) {
#if defined(__AVX__)
  return _mm256_cvtps_pd(_mm_loadu_ps(p));
#else
  return Double4{static_cast<double>(p[0]), static_cast<double>(p[1]), static_cast<double>(p[2]),
                 static_cast<double>(p[3])};
#endif
}

// 16 lanes in double; a square of a float is exact there.
double block_sum_of_squares(const float* x, std::size_t n) {
  constexpr std::size_t step = 16;
  Double4 lanes[4] = {};
  float padded[step] = {};
  for (std::size_t i = 0; i < n; i += step) {
    prefetch(x + i);
    const float* group = x + i;
    if (i + step > n) {
      std::copy_n(group, n - i, padded);
      group = padded;
    }
    for (std::size_t j = 0; j < 4; ++j) {
      const Double4 v = widen(group + 4 * j);
      lanes[j] += v * v;
    }
  }
  const Double4 sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

}  // namespace

void CpuOps::do_adamw(std::span<float> param, std::span<float> exp_avg, std::span<float> exp_avg_sq,
                      std::span<const float> grad, const AdamWStep& step) {
  const auto constant = [](double x) { return splat(static_cast<float>(x)); };
  const Float8 grad_scale = constant(step.grad_scale);
  const Float8 keep = constant(1 - step.lr * step.weight_decay);
  const Float8 beta1 = constant(step.beta1);
  const Float8 beta2 = constant(step.beta2);
  const Float8 rest1 = constant(1 - step.beta1);
  const Float8 rest2 = constant(1 - step.beta2);
  const Float8 step_size = constant(step.lr / step.bias1);
  const Float8 root_bias2 = constant(std::sqrt(step.bias2));
  const Float8 eps = constant(step.eps);
  constexpr std::int64_t cost = 4;
  constexpr std::int64_t grain = 4096;
  const auto count = static_cast<std::int64_t>(param.size());
  parallel_ranges(threads_, count, count * cost, grain, [&](std::int64_t first, std::int64_t last) {
    float* p = param.data() + first;
    float* m = exp_avg.data() + first;
    float* v = exp_avg_sq.data() + first;
    const float* g = grad.data() + first;
    for_groups(last - first, [&](auto io, std::int64_t i) {
      for (const float* stream :
           {static_cast<const float*>(p), static_cast<const float*>(m), static_cast<const float*>(v), g})
        prefetch(stream + i);
      const Float8 gradient = io.load(g + i) * grad_scale;
      const Float8 moment = beta1 * io.load(m + i) + rest1 * gradient;
      const Float8 square = beta2 * io.load(v + i) + rest2 * gradient * gradient;
      const Float8 denominator = root8(square) / root_bias2 + eps;
      io.store(m + i, moment);
      io.store(v + i, square);
      io.store(p + i, io.load(p + i) * keep - step_size * moment / denominator);
    });
  });
}

void CpuOps::do_add_sum_of_squares(ExactSum& sum, std::span<const float> x) {
  const auto count = static_cast<std::int64_t>(x.size());
  const auto block = static_cast<std::int64_t>(norm_block);
  std::mutex joining;
  parallel_ranges(threads_, count, count, block, [&](std::int64_t first, std::int64_t last) {
    ExactSum part;
    for (std::int64_t i = first; i < last; i += block) {
      part.add(block_sum_of_squares(x.data() + i, static_cast<std::size_t>(std::min(block, last - i))));
    }
    const std::lock_guard lock(joining);
    sum.add(part);
  });
}

}  // namespace lamina::cpu
