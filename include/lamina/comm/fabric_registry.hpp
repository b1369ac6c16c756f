// Fabrics by name, chosen once in `app`.
#pragma once

#include <memory>
#include <string>

#include <lamina/comm/fabric.hpp>
#include <lamina/mpi/communicator.hpp>

namespace lamina {

// name: "mpi" or "nccl". Throws UsageError for an unknown name and for one that this build does not contain (it names
// the CMake option).
[[nodiscard]] std::unique_ptr<Fabric> make_fabric(const std::string& name, const mpi::Communicator& world,
                                                  const Topology& topology, SumOrder order);

}  // namespace lamina
