// What a run may remove, what it moves aside, what it passes over, and what it says.
#include "checkpoint/sample_checkpoint.hpp"
#include "support/temporary_folder.hpp"

#include <cerrno>
#include <fstream>

#include <lamina/base/file.hpp>
#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/proof.hpp>
#include <lamina/checkpoint/transaction.hpp>
#include <lamina/checkpoint/upkeep.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// The fsync of one folder may be told to fail.
namespace {
std::string fsync_fails_for;  // a folder, once it holds `only_with`
std::string only_with;
}  // namespace
extern "C" int fsync(int descriptor) {
  struct stat one {
  }, other{};
  if (!fsync_fails_for.empty() && ::fstat(descriptor, &one) == 0 && ::stat(fsync_fails_for.c_str(), &other) == 0 &&
      one.st_ino == other.st_ino && ::access(only_with.c_str(), F_OK) == 0) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

namespace lamina {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using test::newest_checkpoint;
using test::save_sample;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Upkeep : public testing::Test {
 protected:
  [[nodiscard]] static std::vector<std::string> names(const fs::path& folder) {
    std::vector<std::string> result;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) result.push_back(entry.path().filename());
    std::sort(result.begin(), result.end());
    return result;
  }
  [[nodiscard]] std::size_t set_aside_count() const { return names(run_ / "aside").size(); }
  static void damage(const fs::path& checkpoint, const char* file = "rank_00000.h5") {
    test::flip_byte(checkpoint / file, fs::file_size(checkpoint / file) - 100);
  }
  // Of checkpoint_candidates(path), or "no exception".
  [[nodiscard]] static std::string refusal(const fs::path& path) {
    return message_of<CheckpointError>([&] { static_cast<void>(checkpoint_candidates(path)); });
  }

  test::TemporaryFolder folder_;
  fs::path run_ = folder_ / "run";
};

TEST_F(Upkeep, RemovesOnlyWhatTheRunItselfWrote) {
  save_sample(run_, 10, 1, 0, {}, "other");  // a checkpoint of another run
  fs::create_directories(run_ / "step_00000020");
  std::ofstream(run_ / "step_00000020" / "notes.txt") << "mine";
  fs::create_directories(run_ / "step_00000015.tmp-other.1");
  fs::create_directories(run_ / (std::string("step_00000016.tmp-") + test::sample_run + ".1"));
  fs::create_directories(run_ / "step_00000017.tmp-old");  // as earlier versions named them
  for (const std::int64_t step : {20, 30, 40}) save_sample(run_, step, 1, 1);
  EXPECT_THAT(names(run_), ElementsAre("aside", "latest", "step_00000010", "step_00000040"));
  EXPECT_EQ(set_aside_count(), 3u);
  for (const auto& entry : fs::directory_iterator(run_ / "aside")) {
    if (entry.path().filename().string().starts_with("step_00000020.")) {
      EXPECT_EQ(read_file(entry.path() / "notes.txt"), "mine");
    }
  }
}

TEST_F(Upkeep, ACheckpointOfAnotherRunAtTheSameStepIsMovedAside) {
  save_sample(run_, 10, 2, 0, {}, "other");
  save_sample(run_, 10, 1, 1);
  EXPECT_THAT(names(run_), ElementsAre("aside", "latest", "step_00000010"));
  ASSERT_EQ(set_aside_count(), 1u);
  const Manifest kept = read_manifest(run_ / "aside" / names(run_ / "aside").front());
  EXPECT_EQ(kept.run_id, "other");
  EXPECT_EQ(kept.world_size, 2);
}

TEST_F(Upkeep, LinksThatLeadNowhereAreNamedAndMovedAside) {
  fs::create_directories(run_);
  fs::create_symlink("step_00000010", run_ / "step_00000010");  // in a loop
  fs::create_symlink("/nowhere", run_ / "step_00000020");
  std::ofstream(run_ / "step_00000030") << "a file";
  EXPECT_THAT(refusal(run_), AllOf(HasSubstr("step_00000010: it is a link that leads nowhere"),
                                   HasSubstr("step_00000020: it is a link that leads nowhere"),
                                   HasSubstr("step_00000030: it is not a folder")));
  EXPECT_THAT(
      refusal(run_ / "step_00000010"),
      AllOf(HasSubstr("cannot use checkpoint " + (run_ / "step_00000010").string()), HasSubstr("leads nowhere")));
  EXPECT_THAT(refusal(run_ / "step_00000020"), HasSubstr("leads nowhere"));
  for (const std::int64_t step : {10, 20, 30}) save_sample(run_, step, 1);
  EXPECT_EQ(set_aside_count(), 3u);
  EXPECT_EQ(newest_checkpoint(run_), run_ / "step_00000030");
}

TEST_F(Upkeep, AFolderOfAnotherStepIsNoCheckpoint) {
  save_sample(run_, 10, 1);
  fs::copy(run_ / "step_00000010", run_ / "step_00000020", fs::copy_options::recursive);
  EXPECT_EQ(newest_checkpoint(run_), run_ / "step_00000010");
  EXPECT_THAT(refusal(run_ / "step_00000020"), HasSubstr("its manifest is that of step 10"));
}

TEST_F(Upkeep, AdviceIsGivenOnce) {
  save_sample(run_, 10, 1);
  fs::resize_file(run_ / "step_00000010" / "manifest.json", 100);
  const std::string text = refusal(run_ / "step_00000010");
  EXPECT_EQ(text.find("take another"), text.rfind("take another")) << text;
  EXPECT_THAT(text, HasSubstr("take another checkpoint"));
  EXPECT_THAT(refusal(run_), Not(HasSubstr("take another")));
}

// As somebody without permission; returns what `work` says there.
std::string as_nobody(const std::function<std::string()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setegid(65534) != 0 || ::seteuid(65534) != 0)) ::_exit(2);
    const std::string text = work();
    ::_exit(::write(ends[1], text.data(), text.size()) < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], text.data(), text.size()))));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return text;
}

TEST_F(Upkeep, UnreadableIsNotUnfinished) {
  save_sample(run_, 10, 1);
  save_sample(run_, 20, 1);
  fs::permissions(folder_.path(), fs::perms::all);
  for (const char* hidden : {"", "manifest.json", "rank_00000.h5"}) {
    const fs::path path = hidden[0] == '\0' ? run_ / "step_00000020" : run_ / "step_00000020" / hidden;
    const fs::perms before = fs::status(path).permissions();
    fs::permissions(path, fs::perms::none);
    const std::string text = as_nobody([&] { return refusal(run_); });
    EXPECT_THAT(text, AllOf(HasSubstr("cannot tell which checkpoint"), HasSubstr("step_00000020"),
                            HasSubstr("Permission denied")))
        << hidden;
    EXPECT_THAT(as_nobody([&] { return refusal(run_ / "step_00000020"); }), HasSubstr("permission to read it"));
    fs::permissions(path, before);
  }
  EXPECT_EQ(as_nobody([&] { return refusal(run_); }), "no exception");
}

TEST_F(Upkeep, TheNewestIntactOneIsTaken) {
  for (const std::int64_t step : {10, 20, 30, 40}) save_sample(run_, step, 2);
  damage(run_ / "step_00000040", "rank_00001.h5");
  // A rank file of another step, with the same size.
  fs::copy_file(run_ / "step_00000010" / "rank_00000.h5", run_ / "step_00000030" / "rank_00000.h5",
                fs::copy_options::overwrite_existing);
  damage(run_ / "step_00000030");
  const ProvedCheckpoint proved = prove_checkpoint(run_);
  EXPECT_EQ(proved.reader.folder(), run_ / "step_00000020");
  EXPECT_THAT(proved.skipped,
              ElementsAre(AllOf(HasSubstr("skipped"), HasSubstr("step_00000040"), HasSubstr("checksum")),
                          HasSubstr("step_00000030")));
  EXPECT_THAT(message_of<CheckpointError>([&] { static_cast<void>(prove_checkpoint(run_ / "step_00000040")); }),
              HasSubstr("rank_00001.h5"));
  damage(run_ / "step_00000010");
  damage(run_ / "step_00000020", "rank_00001.h5");
  EXPECT_THAT(message_of<CheckpointError>([&] { static_cast<void>(prove_checkpoint(run_)); }),
              AllOf(HasSubstr("no usable checkpoint"), HasSubstr("step_00000010"), HasSubstr("step_00000040")));
}

TEST_F(Upkeep, AFailedFsyncOfTheRunFolderLeavesACompleteCheckpointAndTheOlderOnes) {
  save_sample(run_, 10, 1, 1);
  fsync_fails_for = run_.string();
  only_with = (run_ / "step_00000020").string();
  const std::string text = message_of<CheckpointError>([&] { save_sample(run_, 20, 1, 1); });
  fsync_fails_for.clear();
  EXPECT_EQ(text, "no exception");
  EXPECT_EQ(prove_checkpoint(run_).reader.folder(), run_ / "step_00000020");
  EXPECT_TRUE(fs::exists(run_ / "step_00000010")) << "what is surely on the disk is kept";
  save_sample(run_, 30, 1, 1);
  EXPECT_THAT(names(run_), ElementsAre("latest", "step_00000030"));
}

}  // namespace
}  // namespace lamina
