#include <map>

#include <lamina/optim/muon_plan.hpp>
#include <lamina/optim/optimizer.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

TensorSpec matrix(const char* name, std::int64_t rows, std::int64_t cols) {
  return {name, {rows, cols}, true, {}, true};
}

// Flat: bias [0, 3), a [3, 15), empty, b [15, 35).
std::vector<UnitSpec> units() {
  return {{"u", {{"bias", {3}, false, {}}, matrix("a", 3, 4), matrix("empty", 0, 4), matrix("b", 10, 2)}},
          {"embedding", {{"e", {5, 5}, true, {}}}}};
}

std::vector<std::vector<FlatRange>> cut(const std::vector<FlatRange>& of_first) {
  return {of_first, std::vector<FlatRange>(of_first.size(), FlatRange{0, 25})};
}

TEST(MuonPlan, TheRankWithMostOwnsAMatrix) {
  const MuonPlan plan(units(), cut({{0, 10}, {10, 20}, {20, 40}}));
  ASSERT_EQ(plan.matrices(0).size(), 2u);
  EXPECT_TRUE(plan.matrices(1).empty());
  const MuonMatrix &a = plan.matrices(0)[0], &b = plan.matrices(0)[1];
  EXPECT_EQ(a.tensor, 1u);
  EXPECT_EQ(b.tensor, 3u);
  EXPECT_EQ(a.owner, 0);  // 7 of 12
  EXPECT_EQ(b.owner, 2);  // 15 of 20
  EXPECT_EQ(plan.piece(0, b, 1), (FlatRange{15, 20}));
  EXPECT_EQ(plan.piece(0, a, 2).length(), 0);
  EXPECT_FALSE(plan.in_place(0, a));
  EXPECT_EQ(plan.staging(0), 12);
  EXPECT_EQ(plan.staging(1), 0);
  EXPECT_EQ(plan.workspace(0), 12 + 12 + 2 * 9);
  EXPECT_EQ(plan.workspace(1), 0);
  EXPECT_EQ(plan.workspace(2), 20 + 20 + 2 * 4);
}

TEST(MuonPlan, TheLowestOfEqualRanksOwns) {
  // Blocks need not follow the ranks: rank 1 has the front half of a here.
  const MuonPlan plan(units(), cut({{9, 25}, {0, 9}, {25, 40}}));
  EXPECT_EQ(plan.matrices(0)[0].owner, 0);
  EXPECT_EQ(plan.matrices(0)[1].owner, 0);
}

TEST(MuonPlan, NothingMovesWhereARankHasAll) {
  const MuonPlan plan(units(), cut({{0, 40}}));
  for (const MuonMatrix& m : plan.matrices(0)) EXPECT_TRUE(plan.in_place(0, m));
  EXPECT_EQ(plan.staging(0), 0);
  EXPECT_EQ(plan.workspace(0), 20 + 2 * 4 > 12 + 2 * 9 ? 28 : 30);
  EXPECT_EQ(plan.floats_sent(0, [](int) { return true; }), 0u);
}

// Each element of a matrix that its owner does not update travels twice: there and back.
TEST(MuonPlan, WhatTravelsIsWhatTheOwnersLack) {
  const std::vector<FlatRange> ranges{{0, 10}, {10, 20}, {20, 40}};
  const MuonPlan plan(units(), cut(ranges));
  std::uint64_t sent = 0;
  for (int rank = 0; rank < 3; ++rank) sent += plan.floats_sent(rank, [](int) { return true; });
  EXPECT_EQ(sent, 2u * (5 + 5));
  EXPECT_EQ(plan.floats_sent(1, [](int other) { return other == 2; }), 5u);
}

TEST(MuonPlan, ScalesTheLearningRateByShape) {
  EXPECT_DOUBLE_EQ(muon_lr_scale(MuonAdjustLr::original, 8, 2), 2);
  EXPECT_DOUBLE_EQ(muon_lr_scale(MuonAdjustLr::original, 2, 8), 1);
  EXPECT_DOUBLE_EQ(muon_lr_scale(MuonAdjustLr::match_rms_adamw, 100, 4), 2);
  EXPECT_DOUBLE_EQ(muon_lr_scale(MuonAdjustLr::match_rms_adamw, 4, 100), 2);
}

TEST(PlanState, MuonKeepsSecondMomentsForTheRestOnly) {
  OptimSection optim;
  StorePlan plan;
  plan.units = units();
  plan_state(plan, optim);
  EXPECT_TRUE(plan.second.empty());
  optim.kind = OptimizerKind::muon;
  plan_state(plan, optim);
  EXPECT_EQ(plan.moments, 2);
  ASSERT_EQ(plan.second.size(), 2u);
  EXPECT_EQ(plan.second[0].packed({0, 1024}), (FlatRange{0, 3}));
  EXPECT_TRUE(plan.second[1].whole());
}

}  // namespace
}  // namespace lamina
