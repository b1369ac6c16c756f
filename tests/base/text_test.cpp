#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/base/text.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

TEST(Text, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_bytes(std::uint64_t{3} << 30), "3.00 GiB");
}

TEST(Text, Seconds) {
  EXPECT_EQ(human_seconds(4.21), "4.2 s");
  EXPECT_EQ(human_seconds(185), "3 min 05 s");
  EXPECT_EQ(human_seconds(7620), "2 h 07 min");
}

TEST(Text, NearestName) {
  const std::vector<std::string> names{"optim.lr", "optim.min_lr", "train.steps"};
  EXPECT_EQ(nearest_name("optim.lrr", names), "optim.lr");
  EXPECT_EQ(nearest_name("train.step", names), "train.steps");
  EXPECT_EQ(nearest_name("zzzzzzzzzzzzzzzzzzzzzzz", names), "");
}

TEST(Text, TrimTakesBlanksOffBothEnds) {
  EXPECT_EQ(trim(" \ta b\t "), "a b");
  EXPECT_EQ(trim(" \t "), "");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim("a\r\n"), "a\r\n");
  EXPECT_EQ(trim("\n a\r\n", " \r\n"), "a");
}

TEST(Text, ErrorsAreOneLine) {
  EXPECT_EQ(one_line("cannot open\nx", "no file", "make it"), "cannot open x: no file; make it");
  EXPECT_EQ(one_line("p", "w"), "p: w");
}

}  // namespace
}  // namespace lamina
