// Work on a sequence of inputs by several threads, with the results in the order of the inputs and a bounded number in
// flight.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace lamina::detail {

template <class In, class Out>
class OrderedPipeline {
 public:
  explicit OrderedPipeline(std::size_t threads) : threads_(threads) {}

  // In the calling thread: `produce()` gives optional<In> until it is empty, `consume(Out&&)` takes the results in
  // order. In each of the threads: `make_worker()` gives a function Out(In&&). The first exception of any of them, in
  // the order of the inputs, leaves from here after all threads have ended.
  template <class Produce, class MakeWorker, class Consume>
  void run(Produce produce, MakeWorker make_worker, Consume consume) {
    const Crew crew(*this, make_worker);
    std::deque<std::shared_ptr<Slot>> pending;
    bool more = true;
    while (true) {
      while (more && pending.size() < 2 * threads_ + 1) {
        std::optional<In> input = produce();
        more = input.has_value();
        if (more) pending.push_back(hand_out(std::move(*input)));
      }
      if (pending.empty()) return;
      consume(wait_for(*pending.front()));
      pending.pop_front();
    }
  }

 private:
  struct Slot {
    In input;
    std::optional<Out> output = {};
    std::exception_ptr error = {};
    bool done = false;
  };

  // The threads; ends and joins them when it dies.
  class Crew {
   public:
    template <class MakeWorker>
    Crew(OrderedPipeline& owner, MakeWorker& make_worker) : owner_(owner) {
      try {
        for (std::size_t i = 0; i < owner.threads_; ++i) {
          threads_.emplace_back([&owner, worker = make_worker()]() mutable { owner.work(worker); });
        }
      } catch (...) {  // the limits allow no further thread: those that wait for work must not be waited for
        stop();
        throw;
      }
    }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;
    ~Crew() { stop(); }

   private:
    void stop() {
      {
        const std::lock_guard lock(owner_.mutex_);
        owner_.stop_ = true;
      }
      owner_.for_workers_.notify_all();
    }

    OrderedPipeline& owner_;
    std::vector<std::jthread> threads_;
  };

  std::shared_ptr<Slot> hand_out(In&& input) {
    auto slot = std::make_shared<Slot>(Slot{std::move(input)});
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(slot);
    }
    for_workers_.notify_one();
    return slot;
  }

  Out wait_for(Slot& slot) {
    std::unique_lock lock(mutex_);
    for_owner_.wait(lock, [&] { return slot.done; });
    if (slot.error) std::rethrow_exception(slot.error);
    return std::move(*slot.output);
  }

  template <class Worker>
  void work(Worker& worker) {
    while (true) {
      std::unique_lock lock(mutex_);
      for_workers_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
      if (stop_) return;
      const std::shared_ptr<Slot> slot = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      try {
        slot->output.emplace(worker(std::move(slot->input)));
      } catch (...) {
        slot->error = std::current_exception();
      }
      lock.lock();
      slot->done = true;
      for_owner_.notify_one();
    }
  }

  std::size_t threads_;
  std::mutex mutex_;
  std::condition_variable for_workers_, for_owner_;
  std::deque<std::shared_ptr<Slot>> waiting_;
  bool stop_ = false;
};

}  // namespace lamina::detail
