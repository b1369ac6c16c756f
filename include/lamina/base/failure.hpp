// How a program ends when something goes wrong: the one place that turns exceptions into a line and an exit code.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include <lamina/base/error.hpp>

namespace lamina {

struct Failure {
  ExitCode code = ExitCode::internal;
  std::string message;
};

// Errors of Lamina say both themselves. Memory, address space or threads that the machine or its limits do not give
// are usage (64), with what is left of them; other errors of the system are data (65); anything else is a defect (70).
[[nodiscard]] Failure failure_of(const std::exception_ptr& error);

// The main function of every program: runs `body`, flushes standard output and returns the exit code; an exception
// becomes one "error: ..." line on standard error. A file size limit (SIGXFSZ) becomes an error of the write that met
// it.
[[nodiscard]] int run_program(const std::function<int()>& body);

}  // namespace lamina
