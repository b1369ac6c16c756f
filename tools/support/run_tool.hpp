// The main function of a small program: arguments in, exit code out, every error one line on standard error.
#pragma once

#include <functional>

#include <lamina/config/argument_parser.hpp>

namespace lamina {

// Parses `argv` with `parser`; prints help or version, or runs `work`. Returns the exit code of base/error.hpp. What
// was printed but could not be written (a full disk behind a redirection) is an error too.
[[nodiscard]] int run_tool(int argc, const char* const* argv, ArgumentParser& parser,
                           const std::function<void()>& work);

}  // namespace lamina
