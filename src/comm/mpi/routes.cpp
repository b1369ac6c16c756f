#include "routes.hpp"

#include <numeric>

namespace lamina {

Routes make_routes(const Topology& topology) {
  Routes routes;
  for (int node = 0; node < topology.node_count(); ++node) {
    if (node != topology.node()) routes.partners.push_back(topology.rail_partner(topology.rank(), node));
  }
  for (int rank = 0; rank < topology.world_size(); ++rank) {
    if (topology.node_of(rank) == topology.node()) continue;
    if (topology.rail_partner(rank, topology.node()) == topology.rank()) routes.wards.push_back(rank);
  }
  return routes;
}

namespace {

SumPlan plan_by_rank(const Topology& topology) {
  SumPlan plan;
  plan.messages_per_ward = topology.local_size();
  // A partner sends its node's gradients in local order, which is rank order.
  for (int rank = 0; rank < topology.world_size(); ++rank) {
    const int node = topology.node_of(rank);
    Term term;
    if (node == topology.node()) {
      term.local = {topology.local_of(rank)};
    } else {
      term.message = static_cast<int>(plan.message_from.size());
      plan.message_from.push_back(topology.rail_partner(topology.rank(), node));
    }
    plan.terms.push_back(term);
  }
  return plan;
}

SumPlan plan_by_node(const Topology& topology) {
  SumPlan plan;
  plan.messages_per_ward = 1;
  for (int node = 0; node < topology.node_count(); ++node) {
    Term term;
    if (node == topology.node()) {
      term.local.resize(static_cast<std::size_t>(topology.local_size()));
      std::iota(term.local.begin(), term.local.end(), 0);
    } else {
      term.message = static_cast<int>(plan.message_from.size());
      plan.message_from.push_back(topology.rail_partner(topology.rank(), node));
    }
    plan.terms.push_back(term);
  }
  return plan;
}

}  // namespace

SumPlan make_sum_plan(const Topology& topology, SumOrder order) {
  return order == SumOrder::rank ? plan_by_rank(topology) : plan_by_node(topology);
}

}  // namespace lamina
