#include "reduction.hpp"
#include "routes.hpp"
#include "slot_memory.hpp"

#include <lamina/comm/traffic.hpp>

namespace lamina {

std::uint64_t floats_sent_by_gather(const Topology& topology, std::int64_t block_elements) {
  return make_routes(topology).partners.size() * static_cast<std::uint64_t>(block_elements);
}

std::uint64_t floats_sent_by_reduction(const Topology& topology, SumOrder order, std::int64_t block_elements) {
  const auto messages = static_cast<std::uint64_t>(make_sum_plan(topology, order).messages_per_ward);
  return make_routes(topology).wards.size() * messages * static_cast<std::uint64_t>(block_elements);
}

std::uint64_t slot_memory_bytes(const Topology& topology, SumOrder order, const SlotPlan& plan) {
  std::uint64_t bytes = 0;
  for (int local = 0; local < topology.local_size(); ++local) bytes += SlotMemory::bytes_of_rank(plan, local);
  return bytes + static_cast<std::uint64_t>(topology.local_size()) *
                     staging_bytes(topology, order, plan.slot_elements / topology.world_size());
}

}  // namespace lamina
