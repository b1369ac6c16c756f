#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

#include <lamina/base/address_space.hpp>
#include <lamina/base/failure.hpp>
#include <lamina/base/host_memory.hpp>
#include <lamina/base/text.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

// What is left of memory and address space, as far as the system tells.
std::string what_is_left() {
  const std::optional<std::uint64_t> memory = available_memory();
  std::string left = memory ? human_bytes(*memory) + " of memory are left here" : "the system gives no more";
  if (const std::optional<AddressSpace> space = address_space()) {
    left += fmt::format(", and {} leaves {} of {}", space->limit_name, human_bytes(space->left()),
                        human_bytes(space->limit));
  }
  return left;
}

Failure out_of_memory() {
  try {
    return {ExitCode::usage, one_line("out of memory", what_is_left(),
                                      "use a smaller model, batch or sequence length, more nodes, or raise the limit")};
  } catch (const std::bad_alloc&) {
    return {ExitCode::usage, "out of memory"};  // short: needs no memory of its own
  }
}

Failure of_system(const std::system_error& error) {
  if (error.code() == std::errc::not_enough_memory) return out_of_memory();
  if (error.code() == std::errc::resource_unavailable_try_again) {
    return {ExitCode::usage, one_line("cannot make a thread", what_is_left(),
                                      "raise the limits of this process (ulimit -v and -u) or use fewer threads")};
  }
  return {ExitCode::data, one_line(error.what(), "")};
}

void flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw DataError(one_line("cannot write the output", std::strerror(errno)));
}

}  // namespace

Failure failure_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return {known.code(), known.what()};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {  // a container larger than any address space
    return out_of_memory();
  } catch (const std::system_error& system) {
    return of_system(system);
  } catch (const std::exception& other) {
    return {ExitCode::internal, one_line("unexpected error", other.what(), "please report it")};
  } catch (...) {
    return {ExitCode::internal, "unexpected error: please report it"};
  }
}

int run_program(const std::function<int()>& body) {
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int code = body();
    flush_output();
    return code;
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    std::fflush(stdout);  // what was printed before comes before
    std::fprintf(stderr, "error: %s\n", failure.message.c_str());
    return static_cast<int>(failure.code);
  }
}

}  // namespace lamina
