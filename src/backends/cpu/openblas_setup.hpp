// What must be right about OpenBLAS before the first product.
#pragma once

#include <string>

namespace lamina::cpu {

// Call once, before the first product and while no other thread uses BLAS. Throws UsageError when this OpenBLAS cannot
// share the program's threads and more than one is asked for.
//
// An OpenBLAS older than the processor falls back to kernels of 2004 (Debian 12's 0.3.21 does on Intel's model 207: a
// fifth of the speed). Then the kernels that fit the processor's features are chosen instead, unless OPENBLAS_CORETYPE
// says which to use.
void prepare_openblas(int threads);

// The name of OpenBLAS's kernels in use, as "Haswell".
[[nodiscard]] std::string openblas_kernels();

}  // namespace lamina::cpu
