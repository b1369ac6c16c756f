// Which instruction sets the kernels were compiled for, and whether this processor has them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::cpu {

struct Feature {
  const char* name;   // "avx2"
  bool compiled_for;  // the compiler was free to use it in the kernels
};

// Constant data of a file that is compiled like the kernels. Reading it executes no kernel code.
extern const std::span<const Feature> compiled_features;

// Names of the features in `needed` that this processor lacks.
[[nodiscard]] std::vector<std::string> missing_features(std::span<const Feature> needed);

// Throws UsageError when `missing` is not empty, naming what to configure. `arch` is the -march= of the kernels.
void refuse_missing_features(std::span<const std::string> missing, std::string_view arch);

}  // namespace lamina::cpu
