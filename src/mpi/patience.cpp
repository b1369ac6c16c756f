#include <algorithm>

#include <lamina/mpi/patience.hpp>

#include <fmt/format.h>

namespace lamina::mpi {

namespace {

// Of this thread: how deep in local work it is, and whether it waits inside.
thread_local int depth = 0;

double seconds(std::int64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); }

}  // namespace

static_assert(std::is_same_v<Patience::Clock::duration, std::chrono::nanoseconds>);

Patience::Patience(Seconds deadline) : deadline_(deadline), last_progress_(now()) {}

bool Patience::exhausted(Clock::time_point begin) const {
  const std::int64_t since = std::max(begin.time_since_epoch().count(), somebody_got_on_.load());
  // A sign may be as old as a round and take another to arrive.
  return seconds(now() - since - 2 * interval_.load()) > deadline_.count();
}

std::string Patience::reason() const {
  const std::int64_t interval = interval_;
  if (interval == 0) return "another rank has stopped or the network is lost";
  const double silence = seconds(now() - last_round_);
  if (silence > seconds(3 * interval))
    return fmt::format("another rank has stopped or the network is lost: no sign of life for {:.0f} s", silence);
  if (const int rank = overdue_rank_; rank >= 0)
    return fmt::format("rank {} is busy with files for longer than run.local_deadline_s", rank);
  return "all ranks live, but none has got on for that long";
}

Patience::LocalWork::LocalWork(Patience& patience) : patience_(patience) {
  patience_.progress();
  if (depth++ == 0) ++patience_.workers_;
}

Patience::LocalWork::~LocalWork() {
  if (--depth == 0) --patience_.workers_;
  patience_.progress();
}

Patience::Waiting::Waiting(Patience& patience) : patience_(patience) {
  if (depth > 0) --patience_.workers_;
}

Patience::Waiting::~Waiting() {
  patience_.progress();
  if (depth > 0) ++patience_.workers_;
}

}  // namespace lamina::mpi
