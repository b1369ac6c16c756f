#include "terminal.hpp"

#include <cstdlib>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace lamina {

namespace {

int columns_of(int file) {
  if (::isatty(file) != 1) return 0;
  winsize size{};
  // Some terminals do not know how wide they are.
  return ::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

int terminal_columns() {
  if (const int columns = columns_of(STDERR_FILENO); columns > 0) return columns;
  // mpirun reads its ranks' standard error from pipes and writes it to its own; it is the parent of the ranks on its
  // machine.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return 0;
  const int parents = ::open(fmt::format("/proc/{}/fd/2", ::getppid()).c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (parents < 0) return 0;
  const int columns = columns_of(parents);
  ::close(parents);
  return columns;
}

}  // namespace lamina
