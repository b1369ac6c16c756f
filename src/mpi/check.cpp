#include <array>

#include <lamina/base/error.hpp>
#include <lamina/mpi/check.hpp>

#include <fmt/format.h>
#include <mpi.h>

namespace lamina::mpi {

void check(int code, std::string_view call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  throw PeerError(one_line(fmt::format("{} failed", call),
                           std::string_view(text.data(), static_cast<std::size_t>(length)),
                           "another rank or the network may be lost; start the job again"));
}

}  // namespace lamina::mpi
