// The one place where Boost.Program_options reads a command line: words into options with their values, and the rest.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamina::detail {

struct KnownOption {
  std::string name;
  bool takes_value;
};

struct SplitArguments {
  std::vector<std::pair<std::string, std::vector<std::string>>> options;  // in the order given
  std::vector<std::string> positionals;
};

// Throws UsageError for an unknown option (naming the nearest), a missing or a superfluous value.
[[nodiscard]] SplitArguments split_arguments(std::string_view program, std::span<const std::string> arguments,
                                             std::span<const KnownOption> known);

}  // namespace lamina::detail
