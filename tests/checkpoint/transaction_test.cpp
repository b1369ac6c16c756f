#include "checkpoint/sample_checkpoint.hpp"
#include "support/temporary_folder.hpp"

#include <fstream>

#include <lamina/base/file.hpp>
#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/shard_reader.hpp>
#include <lamina/checkpoint/transaction.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lamina {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using test::newest_checkpoint;
using test::resolve_checkpoint;
using test::save_sample;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Transaction : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator(run_)) result.push_back(entry.path().filename());
    std::sort(result.begin(), result.end());
    return result;
  }

  test::TemporaryFolder folder_;
  fs::path run_ = folder_ / "run";
};

TEST_F(Transaction, SavesWhatItWasGiven) {
  const fs::path saved = save_sample(run_, 100, 3);
  EXPECT_EQ(saved, run_ / "step_00000100");
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000100"));
  EXPECT_EQ(read_file(run_ / "latest"), "step_00000100\n");
  const Manifest manifest = read_manifest(saved);
  EXPECT_EQ(manifest.step, 100);
  EXPECT_EQ(manifest.sequence, 1u);
  EXPECT_EQ(manifest.next_sample, 77u);
  EXPECT_EQ(read_file(saved / "model" / "config.json"), manifest.model_config_json);
  EXPECT_EQ(read_file(saved / "model" / "tokenizer.json"), "{\"model\": 1}");
  EXPECT_EQ(resolve_checkpoint(run_), saved);
  EXPECT_EQ(resolve_checkpoint(run_.string() + "/"), saved);
  EXPECT_EQ(resolve_checkpoint(saved), saved);
  EXPECT_EQ(resolve_checkpoint(run_ / "latest"), saved);
}

TEST_F(Transaction, KeepsTheNewest) {
  for (const std::int64_t step : {10, 20, 30, 40}) save_sample(run_, step, 2, 2);
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000030", "step_00000040"));
  save_sample(run_, 50, 2, 0);
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000030", "step_00000040", "step_00000050"));
}

TEST_F(Transaction, TheLastSavedIsTheNewestEvenAtAnEarlierStep) {
  save_sample(run_, 100, 1);
  save_sample(run_, 60, 1, 1);  // somebody went back to step 50
  EXPECT_EQ(newest_checkpoint(run_), run_ / "step_00000060");
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000060"));
}

TEST_F(Transaction, ReplacesAStep) {
  save_sample(run_, 100, 1);
  save_sample(run_, 100, 4);
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000100"));
  EXPECT_EQ(read_manifest(run_ / "step_00000100").world_size, 4);
}

TEST_F(Transaction, DyingBetweenTheTwoRenamesLosesNothing) {
  save_sample(run_, 50, 1);
  save_sample(run_, 100, 1);
  fs::rename(run_ / "step_00000100", run_ / "step_00000100.replaced-x");
  EXPECT_EQ(newest_checkpoint(run_), run_ / "step_00000100.replaced-x");
  ShardReader(resolve_checkpoint(run_)).verify_all();
  save_sample(run_, 110, 1);
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000050", "step_00000100", "step_00000110"));
}

TEST_F(Transaction, IgnoresAndRemovesWhatDiedBefore) {
  save_sample(run_, 100, 2);
  const std::string left = std::string("step_00000200.tmp-") + test::sample_run + ".dead";
  fs::copy(run_ / "step_00000100", run_ / left, fs::copy_options::recursive);
  EXPECT_EQ(newest_checkpoint(run_), run_ / "step_00000100");
  EXPECT_EQ(list_checkpoints(run_).size(), 1u);
  save_sample(run_, 300, 2);
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000100", "step_00000300"));
}

TEST_F(Transaction, SkipsIncompleteOnesAndSaysWhy) {
  save_sample(run_, 100, 2);
  save_sample(run_, 200, 2);
  save_sample(run_, 300, 2);
  save_sample(run_, 400, 2);
  save_sample(run_, 500, 2);
  fs::remove(run_ / "step_00000200" / "rank_00001.h5");
  fs::resize_file(run_ / "step_00000300" / "rank_00000.h5", 100);
  fs::remove(run_ / "step_00000400" / "manifest.json");
  fs::resize_file(run_ / "step_00000500" / "manifest.json", 100);
  EXPECT_EQ(newest_checkpoint(run_), run_ / "step_00000100");
  std::vector<std::string> skipped;
  for (const CatalogEntry& entry : candidates_in(run_).others) skipped.push_back(entry.reason);
  EXPECT_THAT(skipped, testing::UnorderedElementsAre(HasSubstr("rank_00001.h5 cannot be used"),
                                                     HasSubstr("rank_00000.h5 has 100 bytes"), HasSubstr("no manifest"),
                                                     HasSubstr("cannot use")));
  EXPECT_THAT(message_of<CheckpointError>([&] { static_cast<void>(resolve_checkpoint(run_ / "step_00000200")); }),
              HasSubstr("rank_00001.h5"));
}

TEST_F(Transaction, NamesTheReasonsWhenNothingIsUsable) {
  EXPECT_THAT(message_of<CheckpointError>([&] { static_cast<void>(resolve_checkpoint(run_)); }),
              HasSubstr("no such folder"));
  fs::create_directories(run_);
  EXPECT_THAT(message_of<CheckpointError>([&] { static_cast<void>(resolve_checkpoint(run_)); }),
              HasSubstr("no folder step_N"));
  fs::create_directories(run_ / "step_00000007");
  EXPECT_THAT(message_of<CheckpointError>([&] { static_cast<void>(resolve_checkpoint(run_)); }),
              AllOf(HasSubstr("step_00000007"), HasSubstr("no manifest")));
  EXPECT_FALSE(newest_checkpoint(run_));
  EXPECT_FALSE(newest_checkpoint(folder_ / "nowhere"));
}

TEST_F(Transaction, AbandonLeavesTheOthersAlone) {
  save_sample(run_, 100, 1);
  CheckpointTransaction transaction(run_, 200, test::sample_run, "id");
  transaction.begin();
  test::write_sample_shard(transaction.folder(), 0, 1);
  transaction.abandon();
  EXPECT_THAT(names(), ElementsAre("latest", "step_00000100"));
}

TEST_F(Transaction, RefusesToCommitWithoutAFile) {
  CheckpointTransaction transaction(run_, 200, test::sample_run, "id");
  transaction.begin();
  Manifest manifest = test::sample_manifest(1);
  manifest.files = {test::write_sample_shard(transaction.folder(), 0, 1)};
  fs::remove(transaction.folder() / "rank_00000.h5");
  EXPECT_THAT(message_of<CheckpointError>([&] { transaction.commit(manifest, {}, 0); }), HasSubstr("No such file"));
  EXPECT_FALSE(newest_checkpoint(run_));
}

TEST_F(Transaction, RefusesAFolderThatCannotBeWritten) {
  fs::create_directories(run_);
  std::ofstream(run_ / "file") << "x";
  CheckpointTransaction transaction(run_ / "file" / "run", 1, test::sample_run, "id");
  EXPECT_THAT(message_of<CheckpointError>([&] { transaction.begin(); }), HasSubstr("Not a directory"));
}

// Runs `work` in a child that may write no file beyond `limit` bytes; returns its exit status.
int in_child_with_limit(rlim_t limit, const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit file_size{limit, limit};
    ::setrlimit(RLIMIT_FSIZE, &file_size);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(Transaction, AnyLimitOnWritingIsReportedAndLeavesThePreviousOne) {
  save_sample(run_, 100, 1);
  const std::uint64_t whole = fs::file_size(run_ / "step_00000100" / "rank_00000.h5");
  for (std::uint64_t limit = 0; limit < whole; limit += 97) {
    const int status = in_child_with_limit(limit, [&] {
      try {
        save_sample(run_, 200, 1);
      } catch (const CheckpointError& error) {
        return std::string(error.what()).find('\n') == std::string::npos ? 66 : 1;
      }
      return 0;
    });
    ASSERT_EQ(status, 66) << "limit " << limit << " of " << whole;
    ASSERT_EQ(newest_checkpoint(run_), run_ / "step_00000100");
  }
}

TEST_F(Transaction, KilledAtAnyMomentTheNewestIsComplete) {
  save_sample(run_, 1, 2);
  for (unsigned delay = 0; delay < 40; ++delay) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (std::int64_t step = 2;; ++step) save_sample(run_, step % 5 + 2, 2, 2);
    }
    ::usleep(500 + 1'700 * delay);
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const auto newest = newest_checkpoint(run_);
    ASSERT_TRUE(newest);
    ShardReader(*newest).verify_all();
  }
}

}  // namespace
}  // namespace lamina
