// Says what is being done when it takes longer than people wait without wondering.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace lamina {

// From its making to its end: "saving step 100 ..." is logged once, if that takes longer than `patience`.
class SlowNotice {
 public:
  explicit SlowNotice(std::string what, std::chrono::milliseconds patience = std::chrono::seconds(2));
  ~SlowNotice();
  SlowNotice(const SlowNotice&) = delete;
  SlowNotice& operator=(const SlowNotice&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread waits_;
};

}  // namespace lamina
