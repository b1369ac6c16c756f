#include "futex_counter.hpp"

#include <climits>
#include <ctime>

#include <lamina/base/error.hpp>

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lamina {

namespace {

constexpr long nap_ns = 200'000'000;  // how late an interruption is noticed

bool reached(std::uint32_t value, std::uint32_t target) { return static_cast<std::int32_t>(value - target) >= 0; }

}  // namespace

void FutexCounter::add_one() {
  value.fetch_add(1, std::memory_order_acq_rel);
  ::syscall(SYS_futex, &value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void wait_for(FutexCounter& counter, std::uint32_t target, const WaitRules& rules, std::string_view what) {
  const mpi::Patience::Clock::time_point begin = mpi::Patience::Clock::now();
  const mpi::Patience::Waiting waiting(*rules.patience);
  while (true) {
    const std::uint32_t seen = counter.value.load(std::memory_order_acquire);
    if (reached(seen, target)) return;
    if (rules.interrupted->load()) throw PeerError(fmt::format("{} gave up waiting for {}", rules.who(), what));
    const timespec nap{0, nap_ns};
    // Returns at once when the value has changed meanwhile; every other return is looked at again above.
    ::syscall(SYS_futex, &counter.value, FUTEX_WAIT, seen, &nap, nullptr, 0);
    if (rules.patience->exhausted(begin) && !reached(counter.value.load(std::memory_order_acquire), target)) {
      const std::chrono::duration<double> waited = mpi::Patience::Clock::now() - begin;
      throw PeerError(one_line(fmt::format("{} waited {:.0f} s for {}", rules.who(), waited.count(), what),
                               rules.patience->reason(),
                               "look at the node and start the job again; run.deadline_s sets the patience"));
    }
  }
}

}  // namespace lamina
