#include <lamina/base/error.hpp>
#include <lamina/config/parameter_groups.hpp>

#include <gmock/gmock.h>

namespace lamina {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_parameter_groups(text));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(ParameterGroups, Parse) {
  EXPECT_TRUE(parse_parameter_groups("").empty());
  EXPECT_TRUE(parse_parameter_groups("  ").empty());
  const std::vector<ParameterGroup> want{{"*.norm.*", std::nullopt, 0.0}, {"a", 0.5, 1e-2}};
  EXPECT_EQ(parse_parameter_groups("*.norm.*:decay=0, a:lr=0.5:decay=1e-2"), want);
  EXPECT_EQ(parse_parameter_groups(" *.norm.* : decay = 0 ,a:decay=0.01:lr=.5"), want);
}

TEST(ParameterGroups, RefuseWhatTheyDoNotMean) {
  EXPECT_THAT(refusal("a"), HasSubstr("neither lr nor decay"));
  EXPECT_THAT(refusal("a:lr=1,"), HasSubstr("no pattern"));
  EXPECT_THAT(refusal(":lr=1"), HasSubstr("no pattern"));
  EXPECT_THAT(refusal("lr=1:a"), HasSubstr("pattern comes first"));
  EXPECT_THAT(refusal("a:momentum=1"), HasSubstr("not 'momentum'"));
  EXPECT_THAT(refusal("a:lr"), HasSubstr("not KEY=NUMBER"));
  EXPECT_THAT(refusal("a:lr="), HasSubstr("finite decimal number"));
  EXPECT_THAT(refusal("a:lr=nan"), HasSubstr("finite decimal number"));
  EXPECT_THAT(refusal("a:lr=-1"), HasSubstr("below 0"));
  EXPECT_THAT(refusal("a:lr=1:lr=2"), HasSubstr("twice"));
  EXPECT_THAT(refusal("a:lr=1, a:decay=2"), HasSubstr("twice"));
}

TEST(ParameterGroups, StarsMatchAnything) {
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("*", "a.b"));
  EXPECT_TRUE(matches_pattern("a.*.weight", "a.0.q.weight"));
  EXPECT_TRUE(matches_pattern("*ab*ab", "aab.abab"));
  EXPECT_TRUE(matches_pattern("a**", "a"));
  EXPECT_FALSE(matches_pattern("a.*.weight", "a.weight"));
  EXPECT_FALSE(matches_pattern("*ab", "aba"));
  EXPECT_FALSE(matches_pattern("", "a"));
  EXPECT_FALSE(matches_pattern("a?", "ab"));
  EXPECT_FALSE(matches_pattern("a", "ab"));
}

}  // namespace
}  // namespace lamina
