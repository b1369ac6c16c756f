#include <lamina/shard/packed_tensors.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

UnitSpec unit() {
  return {"u", {{"a", {3}, true, {}}, {"none", {0}, true, {}}, {"b", {2, 5}, true, {}}, {"c", {4}, true, {}}}};
}

// Offset by offset, with padding after the 17 elements.
TEST(PackedTensors, CountsWhatIsKeptBeforeEveryOffset) {
  for (int mask = 0; mask < 16; ++mask) {
    const std::vector<bool> kept{(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0, (mask & 8) != 0};
    const PackedTensors packed(unit(), kept);
    const bool all = mask == 15;
    EXPECT_EQ(packed.whole(), all);
    std::int64_t count = 0;
    for (std::int64_t offset = 0; offset <= 20; ++offset) {
      ASSERT_EQ(packed.before(offset), count) << "mask " << mask << " offset " << offset;
      const std::size_t tensor = offset < 3 ? 0 : (offset < 13 ? 2 : 3);
      if (all || (offset < 17 && kept[tensor])) ++count;
    }
    for (std::size_t tensor = 0; tensor < 4; ++tensor) EXPECT_EQ(packed.holds(tensor), all || kept[tensor]);
  }
}

TEST(PackedTensors, ARangeIsARange) {
  const PackedTensors packed(unit(), {true, true, false, true});
  EXPECT_EQ(packed.packed({0, 3}), (FlatRange{0, 3}));
  EXPECT_EQ(packed.packed({2, 15}), (FlatRange{2, 5}));
  EXPECT_EQ(packed.packed({4, 12}), (FlatRange{3, 3}));
  EXPECT_EQ(packed.packed({15, 1000}), (FlatRange{5, 7}));
}

TEST(PackedTensors, WholeKeepsPaddingToo) {
  EXPECT_EQ(PackedTensors().packed({5, 1024}), (FlatRange{5, 1024}));
  EXPECT_ANY_THROW(PackedTensors(unit(), {true}));
}

}  // namespace
}  // namespace lamina
