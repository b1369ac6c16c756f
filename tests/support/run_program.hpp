// Whole programs, run as a user would run them.
#pragma once

#include <array>
#include <cstdio>
#include <string>

#include <stdlib.h>
#include <sys/wait.h>

namespace lamina::test {

struct ProgramResult {
  int status = -1;     // exit code, or 128 + the signal that ended it
  std::string output;  // standard output and error
};

// Runs a shell command; quote arguments that need it.
inline ProgramResult run_command(const std::string& command) {
  ProgramResult result;
  FILE* pipe = ::popen(("{ " + command + "\n} 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> block;
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), pipe)) result.output.append(block.data(), n);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace lamina::test
