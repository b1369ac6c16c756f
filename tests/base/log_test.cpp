#include "support/temporary_folder.hpp"

#include <chrono>
#include <thread>

#include <lamina/base/file.hpp>
#include <lamina/base/log.hpp>
#include <lamina/base/slow_notice.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

// What `work` writes to standard error.
template <class Work>
std::string console(const Work& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, ALineTakesThePlaceOfTheLiveLine) {
  set_up_log(0, LogLevel::info);
  EXPECT_EQ(console([] {
              show_live_line("one");
              show_live_line("two");
              log_info("line");
              log_info("line");
              show_live_line("three");
              end_live_line();
              end_live_line();
            }),
            "\r\033[Kone\r\033[Ktwo\r\033[Kline\nline\n\r\033[Kthree\n");
}

TEST(Log, TheFileHasTimesAllLinesAndNoLiveLine) {
  const test::TemporaryFolder folder;
  static_cast<void>(console([&] {
    log_info("before the file");
    add_log_file(folder / "log.txt");
    show_live_line("live");
    log_warn("after it");
  }));
  const std::string text = read_file(folder / "log.txt");
  EXPECT_NE(text.find(" I before the file\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" W warning: after it\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("live"), std::string::npos) << text;
  EXPECT_EQ(text.substr(4, 1) + text.substr(7, 1) + text.substr(13, 1), "--:") << text;
}

TEST(SlowNotice, SpeaksOnceWhenPatienceEnds) {
  using std::chrono::milliseconds;
  EXPECT_EQ(console([] { const SlowNotice notice("quick", std::chrono::seconds(60)); }), "");
  EXPECT_EQ(console([] {
              const SlowNotice notice("slow", milliseconds(10));
              std::this_thread::sleep_for(milliseconds(300));
            }),
            "slow ...\n");
}

}  // namespace
}  // namespace lamina
