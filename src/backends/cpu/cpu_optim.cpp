// Operations on shards: the optimizers' updates.
#include "cpu_ops.hpp"
#include "lanes.hpp"
#include "shard_pass.hpp"

#include <algorithm>
#include <cmath>

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

enum class Decay { of_param, in_gradient };

template <Decay decay>
void adam_pass(int threads, std::span<float> param, std::span<float> exp_avg, std::span<float> exp_avg_sq,
               std::span<const float> grad, const AdamWStep& step) {
  const Float8 grad_scale = constant(step.grad_scale);
  const Float8 keep = constant(1 - step.lr * step.weight_decay);
  const Float8 weight_decay = constant(step.weight_decay);
  const Float8 beta1 = constant(step.beta1);
  const Float8 beta2 = constant(step.beta2);
  const Float8 rest1 = constant(1 - step.beta1);
  const Float8 rest2 = constant(1 - step.beta2);
  const Float8 step_size = constant(step.lr / step.bias1);
  const Float8 root_bias2 = constant(std::sqrt(step.bias2));
  const Float8 eps = constant(step.eps);
  float* p = param.data();
  float* m = exp_avg.data();
  float* v = exp_avg_sq.data();
  const float* g = grad.data();
  for_shard(threads, param.size(), 4, [=](auto io, std::int64_t i) {
    for (const float* stream :
         {static_cast<const float*>(p), static_cast<const float*>(m), static_cast<const float*>(v), g})
      prefetch(stream + i);
    const Float8 old = io.load(p + i);
    Float8 gradient = io.load(g + i) * grad_scale;
    if constexpr (decay == Decay::in_gradient) gradient = gradient + weight_decay * old;
    const Float8 moment = beta1 * io.load(m + i) + rest1 * gradient;
    const Float8 square = beta2 * io.load(v + i) + rest2 * gradient * gradient;
    const Float8 denominator = root8(square) / root_bias2 + eps;
    io.store(m + i, moment);
    io.store(v + i, square);
    const Float8 kept = decay == Decay::of_param ? old * keep : old;
    io.store(p + i, kept - step_size * moment / denominator);
  });
}

}  // namespace

void CpuOps::do_adamw(std::span<float> param, std::span<float> exp_avg, std::span<float> exp_avg_sq,
                      std::span<const float> grad, const AdamWStep& step) {
  adam_pass<Decay::of_param>(threads_, param, exp_avg, exp_avg_sq, grad, step);
}

void CpuOps::do_adam(std::span<float> param, std::span<float> exp_avg, std::span<float> exp_avg_sq,
                     std::span<const float> grad, const AdamWStep& step) {
  adam_pass<Decay::in_gradient>(threads_, param, exp_avg, exp_avg_sq, grad, step);
}

void CpuOps::do_sgd(std::span<float> param, std::span<float> momentum_buffer, std::span<const float> grad,
                    const SgdStep& step) {
  const Float8 grad_scale = constant(step.grad_scale);
  const Float8 weight_decay = constant(step.weight_decay);
  const Float8 momentum = constant(step.momentum);
  const Float8 lr = constant(step.lr);
  float* p = param.data();
  float* b = momentum_buffer.data();
  const float* g = grad.data();
  const auto gradient_at = [=](auto io, Float8 old, std::int64_t i) {
    return io.load(g + i) * grad_scale + weight_decay * old;
  };
  if (momentum_buffer.empty()) {
    for_shard(threads_, param.size(), 2, [=](auto io, std::int64_t i) {
      const Float8 old = io.load(p + i);
      io.store(p + i, old - lr * gradient_at(io, old, i));
    });
    return;
  }
  for_shard(threads_, param.size(), 3, [=, nesterov = step.nesterov](auto io, std::int64_t i) {
    const Float8 old = io.load(p + i);
    const Float8 gradient = gradient_at(io, old, i);
    const Float8 velocity = momentum * io.load(b + i) + gradient;
    io.store(b + i, velocity);
    io.store(p + i, old - lr * (nesterov ? gradient + momentum * velocity : velocity));
  });
}

void CpuOps::do_lion(std::span<float> param, std::span<float> exp_avg, std::span<const float> grad,
                     const LionStep& step) {
  const Float8 grad_scale = constant(step.grad_scale);
  const Float8 keep = constant(1 - step.lr * step.weight_decay);
  const Float8 beta1 = constant(step.beta1);
  const Float8 beta2 = constant(step.beta2);
  const Float8 rest1 = constant(1 - step.beta1);
  const Float8 rest2 = constant(1 - step.beta2);
  const Float8 up = constant(step.lr);
  const Float8 down = constant(-step.lr);
  float* p = param.data();
  float* m = exp_avg.data();
  const float* g = grad.data();
  for_shard(threads_, param.size(), 3, [=](auto io, std::int64_t i) {
    const Float8 gradient = io.load(g + i) * grad_scale;
    const Float8 moment = io.load(m + i);
    const Float8 direction = beta1 * moment + rest1 * gradient;
    // Zero moves nothing; a NaN stays one and shows.
    const Float8 move = direction > Float8{} ? up : (direction < Float8{} ? down : direction);
    io.store(m + i, beta2 * moment + rest2 * gradient);
    io.store(p + i, io.load(p + i) * keep - move);
  });
}

void CpuOps::do_ema(std::span<float> average, std::span<const float> param, double decay) {
  const Float8 rest = constant(1 - decay);
  float* a = average.data();
  const float* p = param.data();
  for_shard(threads_, average.size(), 2, [=](auto io, std::int64_t i) {
    const Float8 old = io.load(a + i);
    io.store(a + i, old + rest * (io.load(p + i) - old));
  });
}

}  // namespace lamina::cpu
