// The arithmetic peak of this moment: fused multiply-adds on 12 independent 256-bit accumulators, no memory.
//
// Shared machines change their speed by two within seconds, so absolute rates mean little. A sample is put between two
// probes of 20 ms with the same number of threads, and reported as a ratio to their mean; the median over several
// samples is the figure (PERFORMANCE.md). Compile with lamina_kernel_options. 512-bit units count as two 256-bit ones:
// there ratios above 1 are possible.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include <omp.h>
#if defined(__AVX__) && defined(__FMA__)
#include <immintrin.h>
#endif

namespace lamina::bench {

// Time of day, or time that the calling thread had a core: the better one for a single thread on a busy machine.
enum class Clock { wall, thread };

inline double now(Clock clock = Clock::wall) {
  timespec t{};
  clock_gettime(clock == Clock::wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

namespace detail {

constexpr int accumulators = 12;
constexpr int lanes = 8;

// `rounds` fused multiply-adds on each accumulator; the result keeps them alive.
inline float multiply_add_rounds(std::int64_t rounds, float seed) {
#if defined(__AVX__) && defined(__FMA__)
  __m256 a[accumulators];
  for (int i = 0; i < accumulators; ++i) a[i] = _mm256_set1_ps(seed + static_cast<float>(i));
  const __m256 x = _mm256_set1_ps(0.999F), y = _mm256_set1_ps(seed);
  for (std::int64_t r = 0; r < rounds; ++r) {
    for (auto& v : a) v = _mm256_fmadd_ps(v, x, y);
  }
  __m256 sum = a[0];
  for (int i = 1; i < accumulators; ++i) sum = _mm256_add_ps(sum, a[i]);
  return _mm256_cvtss_f32(sum);
#else
  float a[accumulators * lanes];
  for (int i = 0; i < accumulators * lanes; ++i) a[i] = seed + static_cast<float>(i);
  for (std::int64_t r = 0; r < rounds; ++r) {
    for (float& v : a) v = __builtin_fmaf(v, 0.999F, seed);
  }
  float sum = 0;
  for (const float v : a) sum += v;
  return sum;
#endif
}

// Operations per second of the calling thread over about `seconds`.
inline double thread_flops(double seconds, Clock clock) {
  constexpr std::int64_t rounds = 20'000;
  volatile float sink = multiply_add_rounds(rounds, 0.5F);
  std::int64_t batches = 0;
  const double start = now(clock);
  double elapsed = 0;
  do {
    sink = multiply_add_rounds(rounds, static_cast<float>(sink) > 0 ? 0.5F : 0.25F);
    ++batches;
    elapsed = now(clock) - start;
  } while (elapsed < seconds);
  return 2.0 * accumulators * lanes * static_cast<double>(rounds * batches) / elapsed;
}

}  // namespace detail

// Floating-point operations per second of `threads` threads together, now.
inline double fma_peak(int threads, double seconds = 0.02, Clock clock = Clock::wall) {
  if (threads == 1) return detail::thread_flops(seconds, clock);
  double total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
  total += detail::thread_flops(seconds, clock);
  return total;
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Sample {
  double seconds = 0;  // median time of one call
  double peak = 0;     // median over samples of the mean of the probes around a sample, operations per second
  double ratio = 0;    // median over samples of (flops / seconds) / peak; 0 when flops is 0
};

// Calls `body` for about `seconds` between two probes, `samples` times, after one call to warm up. One thread is timed
// by its own clock.
template <typename Body>
Sample measure(Body&& body, double flops, int threads, int samples, double seconds) {
  const Clock clock = threads == 1 ? Clock::thread : Clock::wall;
  std::vector<double> times, peaks, ratios;
  body();
  for (int s = 0; s < samples; ++s) {
    const double before = fma_peak(threads, 0.02, clock);
    int calls = 0;
    const double start = now(clock);
    double elapsed = 0;
    do {
      body();
      ++calls;
      elapsed = now(clock) - start;
    } while (elapsed < seconds);
    const double peak = (before + fma_peak(threads, 0.02, clock)) / 2;
    times.push_back(elapsed / calls);
    peaks.push_back(peak);
    ratios.push_back(flops / times.back() / peak);
  }
  return {median(times), median(peaks), median(ratios)};
}

}  // namespace lamina::bench
