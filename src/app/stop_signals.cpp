#include "stop_signals.hpp"

#include <atomic>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string>

#include <lamina/base/log.hpp>
#include <lamina/base/steady_clock.hpp>

#include <fmt/format.h>
#include <unistd.h>

namespace lamina {

namespace {

std::atomic<bool> seen{false};
std::atomic<bool> says_so{false};
std::atomic<std::int64_t> first_ms[2]{0, 0};  // of SIGINT, SIGTERM; 0: not seen
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

// Only what may be called inside a signal handler.
void say(const char* text) {
  if (says_so.load(std::memory_order_relaxed)) static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text)));
}

// Some launchers send a signal to a process and then to its group: that is one request.
bool asked_before(int signal) {
  if (signal != SIGINT && signal != SIGTERM) return false;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t ms = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  std::int64_t first = 0;
  if (first_ms[signal == SIGTERM ? 1 : 0].compare_exchange_strong(first, ms)) return false;
  return ms - first >= 500;
}

void note(int signal) {
  if (asked_before(signal)) {
    say("\nasked twice: ending without saving\n");
    std::signal(signal, SIG_DFL);
    static_cast<void>(std::raise(signal));  // takes effect when this returns
    return;
  }
  if (seen.exchange(true, std::memory_order_relaxed)) return;
  say(signal == SIGINT    ? "\nSIGINT: saving at the end of this step; again: ends at once, without saving\n"
      : signal == SIGTERM ? "\nSIGTERM: saving at the end of this step; again: ends at once, without saving\n"
                          : "\nSIGUSR2: saving at the end of this step\n");
}

}  // namespace

void note_stop_signals(bool speaks) {
  says_so = speaks;
  struct sigaction action {};
  action.sa_handler = note;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGUSR2}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    // A script's background processes ignore Ctrl-C, which is meant for others then.
    if (signal != SIGINT || before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

bool stop_signal_seen() { return seen.load(std::memory_order_relaxed); }

std::optional<double> seconds_before_kill(const mpi::Lookup& environment) {
  if (!environment("OMPI_COMM_WORLD_SIZE")) return std::nullopt;
  const std::string text = environment("OMPI_MCA_odls_base_sigkill_timeout").value_or("1");
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(seconds) : std::nullopt;
}

bool StopWish::operator()() {
  const double now = steady_seconds();
  const double step_s = now - begin_;
  begin_ = now;
  // The first step starts everything up.
  if (++steps_ > 2 && speaks_ && before_kill_s_ && step_s > *before_kill_s_) {
    log_warn(
        fmt::format("a step takes {:.1f} s but mpirun kills its ranks {:g} s after SIGTERM: Ctrl-C would lose what "
                    "is not saved; start it as mpirun --mca odls_base_sigkill_timeout {:.0f}, or stop it with kill "
                    "-USR2 of mpirun, which it passes on at once",
                    step_s, *before_kill_s_, std::ceil(3 * step_s) + 10));
    before_kill_s_.reset();
  }
  return stop_signal_seen();
}

}  // namespace lamina
