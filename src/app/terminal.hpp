// Whether a person sees what this process writes to standard error, and how wide.
#pragma once

namespace lamina {

// Columns of the terminal that standard error is, or of the one that an mpirun on this machine writes to, when standard
// error is a pipe to it. 0: no terminal.
[[nodiscard]] int terminal_columns();

}  // namespace lamina
