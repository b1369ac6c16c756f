#include "support/run_tool.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

int report(ExitCode code, const std::string& message) {
  fmt::print(stderr, "error: {}\n", message);
  return static_cast<int>(code);
}

void flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw DataError(one_line("cannot write the output", std::strerror(errno)));
}

}  // namespace

int run_tool(int argc, const char* const* argv, ArgumentParser& parser, const std::function<void()>& work) {
  try {
    if (const auto text = parser.parse(argument_list(argc, argv))) {
      fmt::print("{}", *text);
    } else {
      work();
    }
    flush_output();
    return static_cast<int>(ExitCode::ok);
  } catch (const Error& error) {
    return report(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return report(ExitCode::usage, "out of memory: the machine or its limits allow no more");
  } catch (const std::system_error& error) {
    return report(ExitCode::data, one_line(error.what(), ""));
  } catch (const std::exception& error) {
    return report(ExitCode::internal, one_line("unexpected error", error.what(), "please report it"));
  }
}

}  // namespace lamina
