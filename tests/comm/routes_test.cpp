#include "routes.hpp"

#include <map>

#include <gtest/gtest.h>

namespace lamina {
namespace {

Topology make(int rank, const std::vector<int>& nodes) {
  return {rank, nodes, std::vector<std::string>(nodes.size(), "host")};
}

const std::vector<std::vector<int>>& worlds() {
  static const std::vector<std::vector<int>> list{
      {0}, {0, 0}, {0, 1}, {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1}, {0, 1, 1, 2, 2, 2}};
  return list;
}

TEST(Routes, WhatOneRankSendsAnotherExpects) {
  for (const auto& nodes : worlds()) {
    const auto world = static_cast<int>(nodes.size());
    for (int a = 0; a < world; ++a) {
      for (const int partner : make_routes(make(a, nodes)).partners) {
        const auto wards = make_routes(make(partner, nodes)).wards;
        EXPECT_EQ(std::count(wards.begin(), wards.end(), a), 1);
      }
      for (const int ward : make_routes(make(a, nodes)).wards) {
        const auto partners = make_routes(make(ward, nodes)).partners;
        EXPECT_EQ(std::count(partners.begin(), partners.end(), a), 1);
      }
    }
  }
}

TEST(SumPlan, CountsEveryRankOnce) {
  for (const auto& nodes : worlds()) {
    for (const SumOrder order : {SumOrder::rank, SumOrder::hierarchical}) {
      const Topology topology = make(0, nodes);
      const SumPlan plan = make_sum_plan(topology, order);
      std::size_t local = 0, messages = 0;
      for (const Term& term : plan.terms) {
        local += term.local.size();
        messages += term.message >= 0 ? 1 : 0;
      }
      EXPECT_EQ(static_cast<int>(local), topology.local_size());
      EXPECT_EQ(messages, plan.message_from.size());
      const int remote =
          order == SumOrder::rank ? topology.world_size() - topology.local_size() : topology.node_count() - 1;
      EXPECT_EQ(static_cast<int>(messages), remote);
      // What each sender sends to its wards is what the receiver expects of it.
      std::map<int, int> expected;
      for (const int from : plan.message_from) ++expected[from];
      for (const auto& [from, count] : expected)
        EXPECT_EQ(make_sum_plan(make(from, nodes), order).messages_per_ward, count);
    }
  }
}

}  // namespace
}  // namespace lamina
