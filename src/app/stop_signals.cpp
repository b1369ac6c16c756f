#include "stop_signals.hpp"

#include <atomic>
#include <csignal>

namespace lamina {

namespace {

std::atomic<bool> seen{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note(int) { seen.store(true, std::memory_order_relaxed); }

}  // namespace

void note_stop_signals() {
  struct sigaction action {};
  action.sa_handler = note;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR2, &action, nullptr);
}

bool stop_signal_seen() { return seen.load(std::memory_order_relaxed); }

}  // namespace lamina
