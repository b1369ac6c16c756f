// Properties of the layout over odd sizes: tensors of 0, 1, 2, 7 and 1000 elements, 1 to 8 ranks, more ranks than
// elements.
#include <lamina/shard/flat_layout.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

UnitSpec unit_of(const std::vector<std::int64_t>& sizes) {
  UnitSpec unit{"unit", {}};
  for (std::size_t i = 0; i < sizes.size(); ++i)
    unit.tensors.push_back({"t" + std::to_string(i), {sizes[i]}, true, {}});
  return unit;
}

const std::vector<std::vector<std::int64_t>>& size_lists() {
  static const std::vector<std::vector<std::int64_t>> lists{
      {}, {0}, {1}, {2}, {7}, {1000}, {0, 1, 2, 7}, {1000, 0, 7, 1}, {1, 1, 1}, {0, 0}};
  return lists;
}

class FlatLayoutProperties : public testing::TestWithParam<std::tuple<std::int64_t, std::int64_t>> {};

TEST_P(FlatLayoutProperties, BlocksCoverThePaddedBufferOnce) {
  const auto [shards, alignment] = GetParam();
  for (const auto& sizes : size_lists()) {
    const FlatLayout layout(unit_of(sizes), shards, alignment);
    EXPECT_GE(layout.padded_elements(), layout.elements());
    EXPECT_LT(layout.padded_elements() - layout.elements(), shards * alignment);
    EXPECT_EQ(layout.block_elements() % alignment, 0);
    std::int64_t next = 0;
    for (std::int64_t block = 0; block < shards; ++block) {
      EXPECT_EQ(layout.block_range(block).begin, next);
      next = layout.block_range(block).end;
      EXPECT_EQ(layout.block_range(block).length(), layout.block_elements());
    }
    EXPECT_EQ(next, layout.padded_elements());
  }
}

TEST_P(FlatLayoutProperties, EveryElementIsOwnedOnceWithItsTensorAndOffset) {
  const auto [shards, alignment] = GetParam();
  for (const auto& sizes : size_lists()) {
    const FlatLayout layout(unit_of(sizes), shards, alignment);
    std::vector<std::vector<int>> seen;
    for (const std::int64_t size : sizes) seen.emplace_back(static_cast<std::size_t>(size), 0);
    for (std::int64_t block = 0; block < shards; ++block) {
      std::int64_t at = layout.owned_range(block).begin;
      for (const Span& span : layout.spans(layout.owned_range(block))) {
        EXPECT_GT(span.length, 0);
        EXPECT_EQ(span.flat_offset, at);
        EXPECT_EQ(layout.tensor_offset(span.tensor) + span.tensor_offset, span.flat_offset);
        at += span.length;
        for (std::int64_t i = 0; i < span.length; ++i)
          ++seen[span.tensor][static_cast<std::size_t>(span.tensor_offset + i)];
      }
      EXPECT_EQ(at, layout.owned_range(block).end);
    }
    for (const auto& tensor : seen) {
      for (const int count : tensor) EXPECT_EQ(count, 1);
    }
  }
}

TEST_P(FlatLayoutProperties, FlatOffsetsDoNotDependOnTheWorldSize) {
  const auto [shards, alignment] = GetParam();
  for (const auto& sizes : size_lists()) {
    const FlatLayout layout(unit_of(sizes), shards, alignment), alone(unit_of(sizes), 1, 1);
    EXPECT_EQ(layout.elements(), alone.elements());
    for (std::size_t tensor = 0; tensor < sizes.size(); ++tensor) {
      EXPECT_EQ(layout.tensor_offset(tensor), alone.tensor_offset(tensor));
    }
    EXPECT_EQ(layout.spans({0, layout.padded_elements()}), alone.spans({0, alone.elements()}));
  }
}

INSTANTIATE_TEST_SUITE_P(OddSizes, FlatLayoutProperties,
                         testing::Combine(testing::Range<std::int64_t>(1, 9), testing::Values(1, 3, 16, 1024)));

TEST(FlatLayout, ATensorOfRankZeroHasOneElement) {
  EXPECT_EQ((TensorSpec{"scalar", {}, false, {}}).elements(), 1);
  EXPECT_EQ((TensorSpec{"empty", {3, 0, 2}, false, {}}).elements(), 0);
}

TEST(FlatLayout, RefusesNonsense) {
  EXPECT_ANY_THROW(FlatLayout(unit_of({1}), 0, 1));
  EXPECT_ANY_THROW(FlatLayout(unit_of({1}), 1, 0));
  EXPECT_ANY_THROW(static_cast<void>(FlatLayout(unit_of({1}), 2, 1).block_range(2)));
}

}  // namespace
}  // namespace lamina
