// How long the ranks wait for each other. Slow is not dead: what counts is not how long a wait takes, but for how long
// nobody has got on.
//
// Two deadlines, by what a rank is doing:
// - in a step (computing, exchanging): somewhere in the world an operation or a wait must end within `deadline`;
// - local work (reading, writing, proving files; Communicator::agree marks it) may take up to the Pulse's local
//   deadline in one piece, as long as the process lives.
// Signs of life of other ranks come from a Pulse (pulse.hpp). Without one, a wait ends after `deadline`.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace lamina::mpi {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  explicit Patience(Seconds deadline);
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  [[nodiscard]] Seconds deadline() const { return deadline_; }
  // Whether a wait that began at `begin` is hopeless.
  [[nodiscard]] bool exhausted(Clock::time_point begin) const;
  // Why, for the message: "another rank has stopped or the network is lost".
  [[nodiscard]] std::string reason() const;

  // This rank has got on. Any thread.
  void progress() { last_progress_.store(now(), std::memory_order_relaxed); }

  // While one lives, its thread does work that needs no other rank.
  class LocalWork {
   public:
    explicit LocalWork(Patience& patience);
    LocalWork(const LocalWork&) = delete;
    LocalWork& operator=(const LocalWork&) = delete;
    ~LocalWork();

   private:
    Patience& patience_;
  };
  // While one lives, its thread waits for others: nested in local work, that stands still.
  class Waiting {
   public:
    explicit Waiting(Patience& patience);
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting();

   private:
    Patience& patience_;
  };

 private:
  friend class Pulse;
  [[nodiscard]] static std::int64_t now() { return Clock::now().time_since_epoch().count(); }

  Seconds deadline_;
  std::atomic<std::int64_t> last_progress_;  // of this rank; nanoseconds of the clock
  std::atomic<int> workers_ = 0;             // threads in local work
  // What the last round of signs told.
  std::atomic<std::int64_t> interval_ = 0;  // between rounds; 0: there are none
  std::atomic<std::int64_t> last_round_ = 0;
  std::atomic<std::int64_t> somebody_got_on_ = 0;
  std::atomic<int> overdue_rank_ = -1;  // in local work for longer than its deadline
};

}  // namespace lamina::mpi
