// A counter in memory shared between processes on which waiters sleep (futex).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <lamina/mpi/patience.hpp>

namespace lamina {

// Only ever grows, modulo 2^32; waiters compare modulo 2^32 too, so the distance between value and target must stay
// below 2^31.
struct alignas(64) FutexCounter {
  std::atomic<std::uint32_t> value;

  void add_one();
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

struct WaitRules {
  mpi::Patience* patience = nullptr;
  const std::atomic<bool>* interrupted;  // ends the wait early
  std::function<std::string()> who;      // "rank R on HOST"
};

// Sleeps until `counter` has reached `target`. Throws PeerError when the patience is exhausted, or when interrupted.
void wait_for(FutexCounter& counter, std::uint32_t target, const WaitRules& rules, std::string_view what);

}  // namespace lamina
