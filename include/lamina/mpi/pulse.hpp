// Signs of life between ranks: a thread of each rank tells all others, a few times within a deadline, since when the
// rank has not got on and whether it is busy with files. A rank that is stopped or dead tells nothing, and then the
// others' waits end; a rank that writes slowly does, and they go on waiting.
#pragma once

#include <memory>

#include <lamina/mpi/communicator.hpp>

namespace lamina::mpi {

class Pulse {
 public:
  // Collective. Serves all waits of `world` and of what was or will be split from it. `local_deadline`: how long one
  // piece of local work may take. Throws AgreedError when a thread cannot be made.
  Pulse(const Communicator& world, std::chrono::duration<double> local_deadline);
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;
  // Ends this rank's signs at once.
  ~Pulse();

  // Collective, at the end of the job: nobody waits for signs any more. Throws PeerError when some rank does not come.
  void leave();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lamina::mpi
