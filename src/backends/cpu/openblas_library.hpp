// OpenBLAS, loaded when it is first needed.
//
// What it does while it is loaded takes a buffer of 128 MiB of address space a thread; when it gets none it tries again
// for ever, before main and without a word. So it is no part of the program from the start: commands that compute
// nothing run without it, and before it is loaded the limits of the process are looked at.
#pragma once

#include <cblas.h>

namespace lamina::cpu {

struct OpenBlas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_ssyrk) ssyrk = nullptr;
  decltype(&openblas_get_corename) get_corename = nullptr;
  decltype(&openblas_get_parallel) get_parallel = nullptr;
  decltype(&openblas_set_num_threads) set_num_threads = nullptr;
  // Exported by builds with kernels for several processors, though in no header; null in others.
  void (*dynamic_init)() = nullptr;
  void (*dynamic_quit)() = nullptr;
};

// The first call loads it, for products on up to `threads` threads. Throws UsageError when it is not there, is not
// usable, or the limits leave too little address space for it.
const OpenBlas& load_openblas(int threads);

// After load_openblas().
[[nodiscard]] const OpenBlas& openblas();

}  // namespace lamina::cpu
