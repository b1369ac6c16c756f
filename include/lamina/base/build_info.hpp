// Facts about this build, for --version and the run's log.
#pragma once

#include <string>

namespace lamina {

struct BuildInfo {
  std::string version;     // "0.1.0"
  std::string commit;      // short hash, "-dirty" when the tree had changes; "unknown" outside git
  std::string compiler;    // "GNU 12.2.0"
  std::string build_type;  // "Release"
  std::string cpu_arch;    // -march= of the kernels, or empty
  std::string mpi;         // library version found when configured
  std::string hdf5;
  std::string blas;
  bool cuda;  // built with -DLAMINA_CUDA=ON
};

[[nodiscard]] const BuildInfo& build_info();

}  // namespace lamina
