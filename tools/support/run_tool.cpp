#include "support/run_tool.hpp"

#include <lamina/base/error.hpp>
#include <lamina/base/failure.hpp>

#include <fmt/format.h>

namespace lamina {

int run_tool(int argc, const char* const* argv, ArgumentParser& parser, const std::function<void()>& work) {
  return run_program([&] {
    if (const auto text = parser.parse(argument_list(argc, argv))) {
      fmt::print("{}", *text);
    } else {
      work();
    }
    return static_cast<int>(ExitCode::ok);
  });
}

}  // namespace lamina
