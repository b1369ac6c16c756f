#include "terminal.hpp"

#include <cstdlib>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace lamina {

bool stderr_reaches_terminal() {
  if (::isatty(STDERR_FILENO) == 1) return true;
  // mpirun reads its ranks' standard error from pipes and writes it to its own; it is the parent of the ranks on its
  // machine.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return false;
  const int parents = ::open(fmt::format("/proc/{}/fd/2", ::getppid()).c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (parents < 0) return false;
  const bool terminal = ::isatty(parents) == 1;
  ::close(parents);
  return terminal;
}

}  // namespace lamina
