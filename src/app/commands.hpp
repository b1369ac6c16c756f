// The subcommands of `lamina`. Arguments follow the subcommand's name; the result is the exit code.
#pragma once

#include <string>
#include <vector>

namespace lamina {

// `argc` and `argv` are the program's own: MPI wants them.
[[nodiscard]] int train_command(const std::vector<std::string>& arguments, int argc, char** argv);
[[nodiscard]] int generate_command(const std::vector<std::string>& arguments);
[[nodiscard]] int chat_command(const std::vector<std::string>& arguments);
[[nodiscard]] int plan_command(std::vector<std::string> arguments);
[[nodiscard]] int eval_command(const std::vector<std::string>& arguments);

}  // namespace lamina
