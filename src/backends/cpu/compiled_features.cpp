// Compiled with the kernels' options, so that the compiler's own macros say what they may contain. Data only: nothing
// here runs.
#include "cpu_features.hpp"

namespace lamina::cpu {
namespace {

constexpr Feature features[] = {
#ifdef __AVX__
    {"avx", true},
#endif
#ifdef __AVX2__
    {"avx2", true},
#endif
#ifdef __FMA__
    {"fma", true},
#endif
#ifdef __BMI__
    {"bmi", true},
#endif
#ifdef __BMI2__
    {"bmi2", true},
#endif
#ifdef __AVX512F__
    {"avx512f", true},
#endif
#ifdef __AVX512VL__
    {"avx512vl", true},
#endif
#ifdef __AVX512BW__
    {"avx512bw", true},
#endif
#ifdef __AVX512DQ__
    {"avx512dq", true},
#endif
    {"baseline", false},
};

}  // namespace

constinit const std::span<const Feature> compiled_features = features;

}  // namespace lamina::cpu
