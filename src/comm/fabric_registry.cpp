#include "nccl/nccl_fabric.hpp"

#include <lamina/base/error.hpp>
#include <lamina/comm/fabric_registry.hpp>
#include <lamina/comm/mpi_fabric.hpp>

#include <fmt/format.h>

namespace lamina {

std::unique_ptr<Fabric> make_fabric(const std::string& name, const mpi::Communicator& world, const Topology& topology,
                                    SumOrder order) {
  if (name == "mpi") return make_mpi_fabric(world, topology, order);
  if (name == "nccl") refuse_nccl_fabric();
  throw UsageError(one_line(fmt::format("unknown fabric '{}'", name), "known are mpi and nccl", "choose one of them"));
}

}  // namespace lamina
