// The MPI handles behind the public types.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string_view>

#include <lamina/mpi/communicator.hpp>

#include <mpi.h>

namespace lamina::mpi {

// Freeing a communicator or a window is collective. While an exception unwinds the stack the other ranks may not be
// here, and a destructor must not wait for them: MPI_Finalize or the end of the job then frees instead.
inline bool can_free() {
  int finalized = 0;
  return std::uncaught_exceptions() == 0 && MPI_Finalized(&finalized) == MPI_SUCCESS && finalized == 0;
}

struct Request::Handle {
  MPI_Request request = MPI_REQUEST_NULL;
};

struct Communicator::Handle {
  Handle(MPI_Comm comm_, std::shared_ptr<Patience> patience_);
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle();

  // The message of a wait that began then and is hopeless.
  [[nodiscard]] std::string lost(Patience::Clock::time_point begin, std::string_view what) const;
  // Waits for `request`, sleeping between looks.
  void complete(MPI_Request& request, std::string_view what) const;

  MPI_Comm comm;
  std::atomic<bool> interrupted = false;
  std::shared_ptr<Patience> patience;  // of the world, shared by all communicators made from it
  int rank = 0;
  int size = 0;
};

}  // namespace lamina::mpi
