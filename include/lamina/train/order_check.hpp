// Whether all ranks have asked the same of their fabrics, in the same order.
#pragma once

#include <functional>
#include <string>

#include <lamina/mpi/communicator.hpp>
#include <lamina/shard/collective_order.hpp>

namespace lamina {

// Compares hashes; when they differ, finds the first difference from rank 0 and throws AgreedError (internal) naming
// rank, operation and unit, on every rank. Collective.
void check_collective_order(const mpi::Communicator& world, const CollectiveOrder& order,
                            const std::function<std::string(std::size_t)>& unit_name);

}  // namespace lamina
