#include "handles.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <lamina/base/error.hpp>
#include <lamina/mpi/check.hpp>
#include <lamina/mpi/pulse.hpp>

#include <fmt/format.h>

namespace lamina::mpi {

namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds interval_for(std::chrono::duration<double> deadline) {
  return std::clamp(std::chrono::duration_cast<std::chrono::nanoseconds>(deadline / 5), 50'000'000ns, 5'000'000'000ns);
}

// What all ranks tell in a round; the largest of each counts.
struct Signs {
  static constexpr std::size_t count = 4;
  std::int64_t got_on = 0;   // minus the nanoseconds since the rank has got on
  std::int64_t busy = 0;     // 1: with local work, within its deadline
  std::int64_t overdue = 0;  // 1 + the rank, when its local work takes longer than that
  std::int64_t stays = 1;    // 0: leaves
};

}  // namespace

class Pulse::Impl {
 public:
  Impl(const Communicator& world, std::chrono::duration<double> local_deadline)
      : patience_(*world.handle_->patience),
        local_deadline_(local_deadline),
        interval_(interval_for(patience_.deadline())),
        own_(world.duplicate()),
        signs_(std::make_unique<std::array<std::int64_t, Signs::count>>()) {
    patience_.last_round_ = Patience::now();
    try {
      world.agree([&] { thread_ = std::thread([this] { serve(); }); }, "the thread for signs of life");
    } catch (...) {  // another rank has none
      end();
      throw;
    }
    patience_.interval_ = interval_.count();
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() { end(); }

  void leave() {
    std::unique_lock lock(mutex_);
    leaving_ = true;
    wake_.notify_all();
    const bool all = wake_.wait_for(lock, patience_.deadline() + 3 * interval_, [this] { return over_; });
    lock.unlock();
    if (!all || failed_) {
      throw PeerError(one_line(fmt::format("rank {} on {} has ended its work", own_.rank(), Communicator::host_name()),
                               "another rank has stopped or the network is lost before all had",
                               "look at the other ranks' hosts"));
    }
    thread_.join();
    patience_.interval_ = 0;  // nobody tells anything any more
  }

 private:
  void end() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    thread_.join();
    if (under_way_) static_cast<void>(signs_.release());  // MPI may still write there
  }

  void serve() {
    bool failed = false;
    try {
      while (one_round() && pause()) {
      }
    } catch (const Error&) {
      failed = true;  // no more signs of this rank: the others' waits end
    }
    const std::lock_guard lock(mutex_);
    failed_ = failed;
    over_ = true;
    wake_.notify_all();
  }

  // Until the next round; at once when this rank leaves. False: this rank ends.
  bool pause() {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, interval_, [this] { return leaving_ || ending_; });
    return !ending_;
  }

  [[nodiscard]] Signs own_signs() {
    Signs signs;
    const std::int64_t idle = Patience::now() - patience_.last_progress_;
    signs.got_on = -idle;
    if (patience_.workers_ > 0) {
      const bool in_time = 1e-9 * static_cast<double>(idle) <= local_deadline_.count();
      (in_time ? signs.busy : signs.overdue) = in_time ? 1 : own_.rank() + 1;
    }
    const std::lock_guard lock(mutex_);
    signs.stays = leaving_ ? 0 : 1;
    return signs;
  }

  // False when all ranks leave, or this one ends.
  bool one_round() {
    const Signs own = own_signs();
    *signs_ = {own.got_on, own.busy, own.overdue, own.stays};
    MPI_Request request = MPI_REQUEST_NULL;
    under_way_ = true;
    check(MPI_Iallreduce(MPI_IN_PLACE, signs_->data(), static_cast<int>(Signs::count), MPI_INT64_T, MPI_MAX,
                         own_.handle_->comm, &request),
          "MPI_Iallreduce");
    if (!complete(request)) return false;
    under_way_ = false;
    note({(*signs_)[0], (*signs_)[1], (*signs_)[2], (*signs_)[3]});
    return (*signs_)[3] != 0;
  }

  bool complete(MPI_Request& request) {
    constexpr std::chrono::microseconds first_nap = 50us, longest_nap = 20'000us, longest_at_end = 1'000us;
    for (std::chrono::microseconds nap = first_nap;; nap = std::min(2 * nap, longest_nap)) {
      int done = 0;
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "the signs of life");
      if (done != 0) return true;
      std::unique_lock lock(mutex_);
      if (ending_) return false;
      wake_.wait_for(lock, leaving_ ? std::min(nap, longest_at_end) : nap);
    }
  }

  void note(const Signs& all) {
    const std::int64_t now = Patience::now();
    patience_.somebody_got_on_ = all.busy > 0 ? now : now + all.got_on;
    patience_.overdue_rank_ = static_cast<int>(all.overdue) - 1;
    patience_.last_round_ = now;
  }

  Patience& patience_;
  std::chrono::duration<double> local_deadline_;
  std::chrono::nanoseconds interval_;
  Communicator own_;
  std::unique_ptr<std::array<std::int64_t, Signs::count>> signs_;
  bool under_way_ = false;  // of the thread; read after it is joined

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool leaving_ = false, ending_ = false, over_ = false, failed_ = false;
  std::thread thread_;
};

Pulse::Pulse(const Communicator& world, std::chrono::duration<double> local_deadline)
    : impl_(world.size() > 1 ? std::make_unique<Impl>(world, local_deadline) : nullptr) {}
Pulse::~Pulse() = default;

void Pulse::leave() {
  if (impl_) impl_->leave();
}

}  // namespace lamina::mpi
