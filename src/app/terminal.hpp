// Whether a person sees what this process writes to standard error.
#pragma once

namespace lamina {

// True when standard error is a terminal, or when it is a pipe to an mpirun on this machine whose own standard error is
// one.
[[nodiscard]] bool stderr_reaches_terminal();

}  // namespace lamina
