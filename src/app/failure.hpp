// How a program ends: one line for the user and the documented exit code.
#pragma once

#include <functional>

namespace lamina {

// Runs `body`; an exception becomes one "error: ..." line on standard error and its exit code.
[[nodiscard]] int run_program(const std::function<int()>& body);

}  // namespace lamina
