#include <filesystem>
#include <fstream>

#include <lamina/base/error.hpp>
#include <lamina/config/command_line.hpp>

#include <gmock/gmock.h>
#include <unistd.h>

namespace lamina {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

std::string file_error(std::string_view text) {
  RunConfig config;
  try {
    apply_ini(config, text, "a.ini");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

class CommandLine : public testing::Test {
 protected:
  CommandLine() { std::filesystem::create_directories(folder_); }
  ~CommandLine() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& text) const {
    const std::string path = (folder_ / "c.ini").string();
    std::ofstream(path) << text;
    return path;
  }
  static std::string error_of(const Words& words) {
    try {
      static_cast<void>(parse_run_arguments("lamina train", words));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("lamina_command_line_" + std::to_string(::getpid()));
};

TEST_F(CommandLine, OptionsWinOverTheFileAndTheFileOverDefaults) {
  const std::string path =
      write("# a comment\r\n[train]\nsteps = 7  # seven\nmicro_batch=2\n[optim]\nschedule = wsd\n");
  const RunArguments out =
      parse_run_arguments("lamina train", Words{path, "--train.steps", "9", "--parallel.strategy=no_shard",
                                                "--train.steps=10", "--data.document_mask", "yes"});
  EXPECT_FALSE(out.print_instead.has_value());
  EXPECT_EQ(out.config.train.steps, 10);
  EXPECT_EQ(out.config.train.micro_batch, 2);
  EXPECT_EQ(out.config.train.global_batch, 8);
  EXPECT_EQ(out.config.optim.schedule, ScheduleKind::wsd);
  EXPECT_EQ(out.config.parallel.strategy, Strategy::no_shard);
  EXPECT_TRUE(out.config.data.document_mask);
}

TEST_F(CommandLine, NamesWhatIsWrongOnTheCommandLine) {
  const std::string path = write("");
  EXPECT_THAT(error_of({path, "--train.step", "9"}), HasSubstr("did you mean --train.steps?"));
  EXPECT_THAT(error_of({path, "--train.steps", "1e-3"}), HasSubstr("--train.steps: cannot use '1e-3'"));
  EXPECT_THAT(error_of({path, "--optim.lr", "nan"}), HasSubstr("--optim.lr"));
  EXPECT_THAT(error_of({path, "--parallel.strategy", "ful"}), HasSubstr("did you mean full?"));
  EXPECT_THAT(error_of({path, "--parallel.prefetch", "4"}), HasSubstr("from 0 to 3"));
  EXPECT_THAT(error_of({path, "--train.steps"}), HasSubstr("train.steps"));
  EXPECT_THAT(error_of({path, path}), HasSubstr("too many"));
  EXPECT_THAT(error_of({}), HasSubstr("CONFIG is missing"));
  EXPECT_THAT(error_of({path + ".not"}), HasSubstr("cannot read"));
  EXPECT_THAT(error_of({folder_.string()}), HasSubstr("folder"));
}

// Names as other trainers have them, with the section left out, with dashes, cut short.
TEST_F(CommandLine, KnowsWhatIsMeant) {
  const std::string path = write("");
  const std::vector<std::pair<std::string, std::string>> meant{{"--steps", "--train.steps"},
                                                               {"--lr", "--optim.lr"},
                                                               {"--train.lr", "--optim.lr"},
                                                               {"--learning_rate", "--optim.lr"},
                                                               {"--learning-rate", "--optim.lr"},
                                                               {"--max_steps", "--train.steps"},
                                                               {"--per_device_train_batch_size", "--train.micro_batch"},
                                                               {"--batch-size", "--train.global_batch"},
                                                               {"--output_dir", "--run.dir"},
                                                               {"--train.global-batch", "--train.global_batch"},
                                                               {"--strat", "--parallel.strategy"},
                                                               {"--thread", "--compute.threads"},
                                                               {"--dump_default", "--dump-default"}};
  for (const auto& [word, option] : meant)
    EXPECT_THAT(error_of({path, word, "1"}), HasSubstr("did you mean " + option + "?")) << word;
  EXPECT_THAT(file_error("[optim]\nlearning_rate = 1\n"), HasSubstr("did you mean optim.lr?"));
  EXPECT_THAT(file_error("[train]\nwarmup_steps = 1\n"), HasSubstr("did you mean optim.warmup?"));
}

TEST_F(CommandLine, DumpsWhatFileAndOptionsSet) {
  const std::string path = write("[train]\nsteps = 7\n");
  const auto dumped = [](const Words& words) {
    RunConfig config;
    apply_ini(config, *parse_run_arguments("lamina train", words).print_instead, "dumped.ini");
    return config;
  };
  EXPECT_EQ(to_ini(dumped({"--dump-default"})), to_ini(RunConfig{}));
  const RunConfig config = dumped({path, "--dump-default", "--optim.lr", "0.5"});
  EXPECT_EQ(config.train.steps, 7);
  EXPECT_EQ(config.optim.lr, 0.5);
  EXPECT_THAT(error_of({"--dump-default", "--train.step", "5"}), HasSubstr("did you mean --train.steps?"));
  EXPECT_THAT(error_of({"--dump-default", "--train.steps", "x"}), HasSubstr("'x'"));
}

TEST_F(CommandLine, HelpHasShortNameExamplesAndOwnOptionsFirst) {
  const RunHelp help{"Does it.", "Own:\n  --ranks N  ranks\n", {"lamina plan a.ini --ranks 4"}};
  const std::string text = *parse_run_arguments("lamina plan", Words{"-h"}, help).print_instead;
  EXPECT_EQ(text, run_help("lamina plan", help));
  EXPECT_THAT(text, HasSubstr("Examples:\n  lamina plan a.ini --ranks 4\n"));
  EXPECT_LT(text.find("--ranks N"), text.find("--help"));
  EXPECT_LT(text.find("--help"), text.find("--run.dir"));
  EXPECT_EQ(parse_run_arguments("lamina train", Words{write(""), "--run.dir", "-h"}).config.run.dir, "-h");
}

TEST_F(CommandLine, AFolderIsNoConfigFile) {
  EXPECT_THAT(error_of({folder_.string()}), HasSubstr("is a folder"));
  std::ofstream(folder_ / "config.ini") << "";
  EXPECT_THAT(error_of({folder_.string()}), HasSubstr((folder_ / "config.ini").string()));
}

TEST(ConfigFile, NamesFileAndLine) {
  EXPECT_THAT(file_error("[train]\n\n# x\nstep = 1\n"),
              AllOf(HasSubstr("a.ini:4"), HasSubstr("did you mean train.steps?")));
  EXPECT_THAT(file_error("[trian]\n"), AllOf(HasSubstr("a.ini:1"), HasSubstr("did you mean [train]?")));
  EXPECT_THAT(file_error("[]\n"), HasSubstr("a.ini:1"));
  EXPECT_THAT(file_error("[\n"), HasSubstr("a.ini:1"));
  EXPECT_THAT(file_error("[train]\nsteps\n"), HasSubstr("a.ini:2"));
  EXPECT_THAT(file_error("steps = 1\n"), AllOf(HasSubstr("a.ini:1"), HasSubstr("no section")));
  EXPECT_THAT(file_error("[train]\nsteps = 1\n[train]\nsteps = 1"),
              AllOf(HasSubstr("a.ini:4"), HasSubstr("set twice")));
  EXPECT_THAT(file_error("[train]\nsteps = 1x\n"), AllOf(HasSubstr("a.ini:2: train.steps"), HasSubstr("'1x'")));
  EXPECT_THAT(file_error("[train]\nsteps =\n"), HasSubstr("a.ini:2"));
  EXPECT_THAT(file_error("[model]\npath = a#b\n"), AllOf(HasSubstr("a.ini:2"), HasSubstr("'#'")));
  EXPECT_THAT(file_error("[model]\npath = \"a\"\n"), HasSubstr("quotes"));
  EXPECT_THAT(file_error("[train]\n = 1\n"), HasSubstr("a.ini:2"));
  EXPECT_THAT(file_error(std::string_view("[tr\0n]", 6)), HasSubstr("not a text file"));
  EXPECT_EQ(file_error("\xEF\xBB\xBF[train]\nsteps = 1"), "no error");
}

TEST(ConfigFile, WhatIsWrittenIsReadBack) {
  RunConfig config;
  config.run.seed = 18446744073709551615ULL;
  config.model.path = "a folder/with = sign";
  config.data.train = "a.h5:0.7, b.h5:0.3";
  config.data.document_mask = true;
  config.optim.lr = 0.1 + 0.2;
  config.optim.schedule = ScheduleKind::linear;
  config.parallel.strategy = Strategy::no_shard;
  config.reduction.order = ReductionOrder::hierarchical;
  config.compute.backend = "cuda";
  config.train.steps = 123456789012;
  const std::string text = to_ini(config);
  RunConfig back;
  apply_ini(back, text, "a.ini");
  EXPECT_EQ(to_ini(back), text);
  EXPECT_EQ(back.optim.lr, config.optim.lr);
  EXPECT_EQ(back.run.seed, config.run.seed);
  EXPECT_EQ(back.model.path, config.model.path);
  EXPECT_EQ(back.reduction.order, ReductionOrder::hierarchical);
}

TEST(ConfigFile, DefaultsAreDumpedAndExplained) {
  const std::string text = explained_ini(RunConfig{});
  RunConfig config;
  apply_ini(config, text, "default.ini");
  EXPECT_EQ(to_ini(config), to_ini(RunConfig{}));
  for (const ConfigOption& option : config_options()) {
    EXPECT_THAT(text, HasSubstr(option.explanation)) << option.name();
    EXPECT_THAT(run_help("lamina train"), HasSubstr("--" + option.name()));
    EXPECT_FALSE(option.explanation.empty());
  }
}

TEST(ConfigFile, EveryOptionIsBoundToItsOwnField) {
  for (const ConfigOption& option : config_options()) {
    RunConfig config;
    const std::string old = option.get(config);
    for (const char* text : {"1", "2", "0.5", "yes", "no", "pretrained", "linear", "sgd", "original", "no_shard",
                             "rank", "cuda", "pad", "uint16"}) {
      try {
        option.set(config, text, "x");
      } catch (const UsageError&) {
        continue;
      }
      if (option.get(config) != old) break;
    }
    EXPECT_NE(option.get(config), old) << option.name();
    int changed = 0;
    for (const ConfigOption& other : config_options()) changed += other.get(config) != other.get(RunConfig{}) ? 1 : 0;
    EXPECT_EQ(changed, 1) << option.name();
  }
}

TEST_F(CommandLine, HelpVersionAndDefaultsNeedNoConfig) {
  EXPECT_THAT(parse_run_arguments("lamina train", Words{"--help"}).print_instead.value_or(""), HasSubstr("[optim]"));
  EXPECT_THAT(parse_run_arguments("lamina train", Words{"--version"}).print_instead.value_or(""),
              HasSubstr("compiler"));
  EXPECT_EQ(parse_run_arguments("lamina train", Words{"--dump-default"}).print_instead.value_or(""),
            explained_ini(RunConfig{}));
}

}  // namespace
}  // namespace lamina
