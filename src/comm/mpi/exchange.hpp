// Messages of floats between any two ranks, all at once.
#pragma once

#include <cstdint>
#include <span>

#include <lamina/comm/fabric.hpp>
#include <lamina/mpi/communicator.hpp>

namespace lamina {

// Fabric::exchange over `world`, whose ranks are the topology's. Returns the floats sent to other nodes.
std::uint64_t exchange_floats(const mpi::Communicator& world, const Topology& topology,
                              std::span<const FloatSend> sends, std::span<const FloatReceive> receives);

}  // namespace lamina
