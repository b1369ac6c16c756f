#include <system_error>
#include <utility>

#include <lamina/base/log.hpp>
#include <lamina/base/slow_notice.hpp>

namespace lamina {

SlowNotice::SlowNotice(std::string what, std::chrono::milliseconds patience) {
  const auto wait = [this, what = std::move(what), patience] {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&] { return done_; })) log_info(what + " ...");
  };
  try {
    waits_ = std::thread(wait);
  } catch (const std::system_error&) {
    // No thread to be had: the work matters more than the notice.
  }
}

SlowNotice::~SlowNotice() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  if (waits_.joinable()) waits_.join();
}

}  // namespace lamina
