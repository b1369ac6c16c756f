// The slots of one node: parameter slots once, gradient slots for each rank, and the counters that order their use.
#pragma once

#include "futex_counter.hpp"

#include <cstdint>

#include <lamina/comm/fabric.hpp>
#include <lamina/mpi/communicator.hpp>

namespace lamina {

// Counters of one slot. Each rank of the node adds one per use.
struct ParameterCounters {
  FutexCounter arrived;   // my part of the unit is in the slot
  FutexCounter released;  // I no longer read the slot
};
struct GradientCounters {
  FutexCounter written;  // my gradient is in my slot
  FutexCounter reduced;  // I no longer read anybody's slot
};

class SlotMemory {
 public:
  // Bytes of shared memory that rank `local_rank` of a node contributes.
  [[nodiscard]] static std::uint64_t bytes_of_rank(const SlotPlan& plan, int local_rank);

  // Collective over `node`. The memory is not touched yet.
  SlotMemory(const mpi::Communicator& node, const SlotPlan& plan);

  // Makes the pages of this rank's part exist, so that a full file system shows now and not as SIGBUS in the middle of
  // a step. Throws UsageError.
  void populate() const;

  [[nodiscard]] float* parameter(int slot) const;
  [[nodiscard]] float* gradient(int local_rank, int slot) const;
  [[nodiscard]] ParameterCounters& parameter_counters(int slot) const;
  [[nodiscard]] GradientCounters& gradient_counters(int slot) const;

 private:
  SlotPlan plan_;
  int local_rank_;
  int local_size_;
  mpi::SharedMemory control_, parameters_, gradients_;
};

// Throws UsageError with the computed need when the shared-memory file system of some host is too small. Collective
// over `world`.
void require_shared_memory(const mpi::Communicator& world, const Topology& topology, const SlotPlan& plan);

}  // namespace lamina
