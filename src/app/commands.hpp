// The subcommands of `lamina`. Arguments follow the subcommand's name; the result is the exit code.
#pragma once

#include <string>
#include <vector>

namespace lamina {

[[nodiscard]] int train_command(int argc, char** argv);  // MPI wants the original arguments
[[nodiscard]] int generate_command(const std::vector<std::string>& arguments);
[[nodiscard]] int plan_command(std::vector<std::string> arguments);
[[nodiscard]] int eval_command(const std::vector<std::string>& arguments);

}  // namespace lamina
