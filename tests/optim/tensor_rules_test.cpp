#include <lamina/base/error.hpp>
#include <lamina/optim/optimizer.hpp>

#include <gmock/gmock.h>

namespace lamina {
namespace {

using testing::HasSubstr;

std::vector<UnitSpec> units() {
  return {{"layers.0", {{"layers.0.q.weight", {2, 2}, true, {}}, {"layers.0.norm.weight", {2}, false, {}}}},
          {"head", {{"embed.weight", {3, 2}, true, {"lm_head.weight"}}}}};
}

OptimSection with_groups(const std::string& groups) {
  OptimSection optim;
  optim.weight_decay = 0.1;
  optim.groups = groups;
  return optim;
}

TensorRules rules(const std::string& groups) { return tensor_rules(with_groups(groups), units()); }

std::string refusal(const std::string& groups) {
  try {
    static_cast<void>(make_optimizer(with_groups(groups), units()));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(TensorRules, WithoutGroupsMatricesDecay) { EXPECT_EQ(rules(""), (TensorRules{{{1, 0.1}, {1, 0}}, {{1, 0.1}}})); }

TEST(TensorRules, TheFirstMatchCountsAndAliasesAreNames) {
  EXPECT_EQ(rules("*norm*:decay=0.3, layers.*:lr=0.5, lm_head.weight:lr=2:decay=0"),
            (TensorRules{{{0.5, 0.1}, {1, 0.3}}, {{2, 0}}}));
}

TEST(TensorRules, PatternsWithoutEffectAreRefused) {
  EXPECT_THAT(refusal("layers.*:lr=0.5, head*:lr=2"), HasSubstr("'head*' matches nothing"));
  EXPECT_THAT(refusal("*:lr=0.5, embed.weight:lr=2"), HasSubstr("'embed.weight' has no effect"));
  EXPECT_EQ(refusal("*:lr=0.5"), "nothing");
}

TEST(MomentCount, IsWhatEachKindKeeps) {
  OptimSection optim;
  EXPECT_EQ(moment_count(optim), 2);
  optim.kind = OptimizerKind::adam;
  EXPECT_EQ(moment_count(optim), 2);
  optim.kind = OptimizerKind::muon;
  EXPECT_EQ(moment_count(optim), 2);
  optim.kind = OptimizerKind::lion;
  EXPECT_EQ(moment_count(optim), 1);
  optim.kind = OptimizerKind::sgd;
  EXPECT_EQ(moment_count(optim), 0);
  optim.momentum = 0.9;
  EXPECT_EQ(moment_count(optim), 1);
}

}  // namespace
}  // namespace lamina
