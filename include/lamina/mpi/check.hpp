// MPI return codes become exceptions, in every build type.
#pragma once

#include <string_view>

namespace lamina::mpi {

// Throws PeerError with the call's name and MPI's own text when `code` is not MPI_SUCCESS.
void check(int code, std::string_view call);

}  // namespace lamina::mpi
