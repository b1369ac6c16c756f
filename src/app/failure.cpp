#include "failure.hpp"

#include <cstdio>
#include <exception>
#include <new>

#include <lamina/base/error.hpp>

namespace lamina {

int run_program(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error: out of memory; use a smaller model, batch or sequence length\n");
    return static_cast<int>(ExitCode::usage);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(ExitCode::internal);
  }
}

}  // namespace lamina
