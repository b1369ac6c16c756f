// Which messages a rank exchanges with other nodes. Pure arithmetic on the topology; the same routes serve gathers
// (owner to partner) and reductions (partner to owner).
#pragma once

#include <vector>

#include <lamina/comm/fabric.hpp>
#include <lamina/topology/topology.hpp>

namespace lamina {

struct Routes {
  // Ranks on other nodes that hold or want something of my block: one per other node.
  std::vector<int> partners;
  // Ranks on other nodes whose blocks I look after on this node.
  std::vector<int> wards;
};

[[nodiscard]] Routes make_routes(const Topology& topology);

// One term of the sum that makes my block: a rank's slot on this node, or a message from another node.
struct Term {
  std::vector<int> local;  // local ranks whose slots are summed; empty for a message
  int message = -1;        // number of the message, in the order in which they are received
};

// The terms of the sum in the order in which they are added, and for each message the partner that sends it.
struct SumPlan {
  std::vector<Term> terms;
  std::vector<int> message_from;
  int messages_per_ward = 0;  // messages that I send to each of my wards
};

[[nodiscard]] SumPlan make_sum_plan(const Topology& topology, SumOrder order);

}  // namespace lamina
