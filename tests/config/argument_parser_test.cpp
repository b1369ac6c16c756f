#include <lamina/base/error.hpp>
#include <lamina/config/argument_parser.hpp>

#include <gmock/gmock.h>

namespace lamina {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

struct Program {
  std::string model;
  std::int64_t threads = 1;
  double top_p = 0.9;
  bool stream = true;
  bool quiet = false;
  std::string kind = "a";
  Words extra;
  std::string out;
  Words files;
  ArgumentParser parser{"lamina-example", "Does an example."};

  Program() {
    parser.option("model", model, "DIR", "model folder", ArgumentParser::Need::required);
    parser.option("threads", threads, "N", "threads to use", IntegerRange{1, 64});
    parser.option("top-p", top_p, "P", "nucleus");
    parser.option("stream", stream, "print tokens at once");
    parser.flag("quiet", quiet, "say nothing");
    parser.choice("kind", kind, {"a", "bee"}, "which");
    parser.list("extra", extra, "X", "more");
    parser.example("lamina-example --model m out f");
    parser.positional("OUT", out, "where to write");
    parser.positionals("FILE", files, "what to read", 1);
  }

  std::string error_of(const Words& words) {
    try {
      static_cast<void>(parser.parse(words));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST(ArgumentParser, FillsEveryKind) {
  Program p;
  EXPECT_EQ(p.parser.parse(Words{"--model=m", "out", "--threads", "4", "f1", "--top-p", "-0.5", "--stream", "no",
                                 "--quiet", "--kind", "bee", "--extra", "1", "--extra=2", "--", "--f2"}),
            std::nullopt);
  EXPECT_EQ(p.model, "m");
  EXPECT_EQ(p.threads, 4);
  EXPECT_EQ(p.top_p, -0.5);
  EXPECT_FALSE(p.stream);
  EXPECT_TRUE(p.quiet);
  EXPECT_EQ(p.kind, "bee");
  EXPECT_THAT(p.extra, ElementsAre("1", "2"));
  EXPECT_EQ(p.out, "out");
  EXPECT_THAT(p.files, ElementsAre("f1", "--f2"));
  EXPECT_TRUE(p.parser.given("threads"));
}

TEST(ArgumentParser, EmptyValuesAreValues) {
  Program p;
  EXPECT_EQ(p.parser.parse(Words{"--model", "", "o", "f"}), std::nullopt);
  p.model = "x";
  EXPECT_EQ(p.parser.parse(Words{"--model=", "o", "f"}), std::nullopt);
  EXPECT_EQ(p.model, "");
}

TEST(ArgumentParser, NamesTheProblem) {
  EXPECT_THAT(Program().error_of({"--modle", "x"}), HasSubstr("did you mean --model?"));
  EXPECT_THAT(Program().error_of({"--modle=x"}), HasSubstr("did you mean --model?"));
  EXPECT_THAT(Program().error_of({"--thr", "2"}), HasSubstr("did you mean --threads?"));
  EXPECT_THAT(Program().error_of({"--num_threads", "2"}), HasSubstr("did you mean --threads?"));
  EXPECT_THAT(Program().error_of({"--top_p", "2"}), HasSubstr("did you mean --top-p?"));
  EXPECT_THAT(Program().error_of({"--model_name_or_path", "x"}), HasSubstr("did you mean --model?"));
  EXPECT_THAT(Program().error_of({"--model", "x", "-q", "a"}), HasSubstr("unknown option -q"));
  EXPECT_THAT(Program().error_of({"--model", "x", "o", "f", "--threads"}), HasSubstr("threads"));
  EXPECT_THAT(Program().error_of({"--model", "x", "o", "f", "--threads", "0"}), HasSubstr("from 1 to 64"));
  EXPECT_THAT(Program().error_of({"--model", "x", "o", "f", "--threads", "2x"}), HasSubstr("'2x'"));
  EXPECT_THAT(Program().error_of({"--model", "x", "--model", "y", "o", "f"}), HasSubstr("given twice"));
  EXPECT_THAT(Program().error_of({"--quiet=1", "--model", "y", "o", "f"}), HasSubstr("quiet"));
  EXPECT_THAT(Program().error_of({"--kind", "be", "--model", "y", "o", "f"}), HasSubstr("did you mean bee?"));
  EXPECT_THAT(Program().error_of({"o", "f"}), HasSubstr("--model is missing"));
  EXPECT_THAT(Program().error_of({"--model", "x", "o"}), HasSubstr("FILE is missing"));
}

TEST(ArgumentParser, RefusesArgumentsItHasNoUseFor) {
  std::string only;
  ArgumentParser parser("p", "s");
  parser.positional("ONE", only, "one", ArgumentParser::Need::optional);
  EXPECT_EQ(parser.parse(Words{}), std::nullopt);
  EXPECT_THROW(static_cast<void>(parser.parse(Words{"a", "b"})), UsageError);
}

TEST(ArgumentParser, HelpAndVersionNeedNothingElse) {
  const auto help = Program().parser.parse(Words{"--help"});
  ASSERT_TRUE(help.has_value());
  EXPECT_THAT(*help, HasSubstr("--threads N"));
  EXPECT_THAT(*help, HasSubstr("(default 0.9)"));
  EXPECT_THAT(*help, HasSubstr("usage: lamina-example --model DIR [options] OUT FILE..."));
  EXPECT_THAT(*help, HasSubstr("Examples:\n  lamina-example --model m out f\n"));
  EXPECT_EQ(Program().parser.parse(Words{"-h"}), help);
  const auto version = Program().parser.parse(Words{"--version"});
  ASSERT_TRUE(version.has_value());
  EXPECT_THAT(*version, HasSubstr("lamina-example 0."));
}

TEST(ParseValue, IsStrict) {
  EXPECT_EQ(parse_integer("-12", "x"), -12);
  EXPECT_EQ(parse_integer("+12", "x"), 12);
  EXPECT_EQ(parse_integer("1e3", "x"), 1000);
  EXPECT_EQ(parse_integer("2.5e1", "x"), 25);
  EXPECT_EQ(parse_integer("9223372036854775807", "x"), std::numeric_limits<std::int64_t>::max());
  for (const char* bad :
       {"", " 1", "1 ", "1.5", "0x10", "1e400", "9223372036854775808", "--1", "++1", "+-1", "1e16", "nan"}) {
    EXPECT_THROW(static_cast<void>(parse_integer(bad, "x")), UsageError) << bad;
  }
  EXPECT_EQ(parse_unsigned("18446744073709551615", "x"), std::numeric_limits<std::uint64_t>::max());
  for (const char* bad : {"", "-1", "18446744073709551616", "1.5"}) {
    EXPECT_THROW(static_cast<void>(parse_unsigned(bad, "x")), UsageError) << bad;
  }
  EXPECT_EQ(parse_number("3e-4", "x"), 3e-4);
  EXPECT_EQ(parse_number("+.5", "x"), .5);
  for (const char* bad : {"", "inf", "nan", "-inf", "1e999", "0x1p3", "1,5", "1f", "e", "1 2"}) {
    EXPECT_THROW(static_cast<void>(parse_number(bad, "x")), UsageError) << bad;
  }
  EXPECT_TRUE(parse_switch("yes", "x"));
  EXPECT_FALSE(parse_switch("false", "x"));
  for (const char* bad : {"", "1", "on", "YES"})
    EXPECT_THROW(static_cast<void>(parse_switch(bad, "x")), UsageError) << bad;
}

}  // namespace
}  // namespace lamina
