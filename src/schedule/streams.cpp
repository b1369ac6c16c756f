#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/base/steady_clock.hpp>
#include <lamina/schedule/streams.hpp>

namespace lamina {

namespace {

constexpr std::size_t compute = static_cast<std::size_t>(StreamKind::compute);

struct Stopped {};  // thrown to unwind a stream after another one has failed

}  // namespace

Program::Program(std::vector<Operation> operations) : operations_(std::move(operations)) {
  for (std::size_t place = 0; place < operations_.size(); ++place) {
    for (const std::size_t wait : operations_[place].waits)
      require(wait < place, "an operation waits for operations before it");
    auto& stream = streams_[static_cast<std::size_t>(operations_[place].stream)];
    stream.push_back(place);
    positions_.push_back(static_cast<std::uint32_t>(stream.size()));
  }
}

class Streams::Impl {
 public:
  Impl(Streams& owner, bool overlap) : owner_(owner), overlap_(overlap) {
    if (!overlap) return;
    try {
      for (std::size_t stream = 0; stream < stream_kinds; ++stream) {
        if (stream != compute) threads_.emplace_back([this, stream] { serve(stream); });
      }
    } catch (...) {  // the limits allow no further thread
      end_threads();
      throw;
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { end_threads(); }

  void set_hooks(StreamHooks hooks) { hooks_ = std::move(hooks); }

  void run(const Program& program, StreamWork& work) {
    require(!failed_, "streams are not used again after an error");
    program_ = &program;
    work_ = &work;
    intervals_.assign(program.operations().size(), {});
    for (auto& over : over_) over.store(0, std::memory_order_relaxed);
    if (!overlap_) {
      run_in_order();
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      ++round_;
      busy_ = threads_.size();
    }
    wake_.notify_all();
    run_stream(compute);
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return busy_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }

  void next_part() {
    const std::size_t place = place_, next = place + 1;
    require(next < program_->operations().size() && program_->operations()[next].kind == OperationKind::backward &&
                program_->operations()[next].part == program_->operations()[place].part + 1,
            "a backward has no more parts than planned");
    finish(place);
    begin(next);
  }

  void work_begins() { intervals_[place_].start = steady_seconds(); }
  [[nodiscard]] std::span<const Interval> intervals() const { return intervals_; }

 private:
  void end_threads() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // The life of a thread.
  void serve(std::size_t stream) {
    for (std::uint64_t seen = 0;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return ending_ || round_ != seen; });
        if (ending_) return;
        seen = round_;
      }
      run_stream(stream);
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) idle_.notify_all();
    }
  }

  void run_stream(std::size_t stream) {
    try {
      for (const std::size_t place : program_->of(static_cast<StreamKind>(stream))) execute(place);
    } catch (const Stopped&) {
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void run_in_order() {
    try {
      for (std::size_t place = 0; place < program_->operations().size(); ++place) execute(place);
    } catch (...) {
      failed_ = true;
      throw;
    }
  }

  void execute(std::size_t place) {
    const Operation& operation = program_->operations()[place];
    if (operation.kind == OperationKind::backward && operation.part > 0) {
      if (place_ < place) {  // what next_part() did not reach
        begin(place);
        finish(place);
      }
      return;
    }
    for (const std::size_t wait : operation.waits) wait_for(wait);
    if (hooks_.before) hooks_.before(operation);
    if (operation.stream == StreamKind::compute) {
      begin(place);
      work_->execute(operation, owner_);
      finish(place_);
    } else {
      intervals_[place].start = steady_seconds();
      work_->execute(operation, owner_);
      finish(place);
    }
  }

  void begin(std::size_t place) {
    place_ = place;
    intervals_[place].start = steady_seconds();
  }

  void finish(std::size_t place) {
    const Operation& operation = program_->operations()[place];
    intervals_[place].end = steady_seconds();
    if (hooks_.after) hooks_.after(operation);
    auto& over = over_[static_cast<std::size_t>(operation.stream)];
    over.store(program_->position(place), std::memory_order_release);
    over.notify_all();
  }

  void wait_for(std::size_t place) {
    auto& over = over_[static_cast<std::size_t>(program_->operations()[place].stream)];
    const std::uint32_t target = program_->position(place);
    for (std::uint32_t seen = over.load(std::memory_order_acquire); seen < target && !failed_;
         seen = over.load(std::memory_order_acquire)) {
      over.wait(seen, std::memory_order_acquire);
    }
    if (failed_) throw Stopped();
  }

  void fail(std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      if (failed_.exchange(true)) return;
      error_ = std::move(error);
    }
    work_->interrupt();
    for (auto& over : over_) {  // wakes every waiter; nobody reads the numbers any more
      over.store(UINT32_MAX, std::memory_order_release);
      over.notify_all();
    }
  }

  Streams& owner_;
  bool overlap_;
  StreamHooks hooks_;
  const Program* program_ = nullptr;
  StreamWork* work_ = nullptr;
  std::vector<Interval> intervals_;
  std::array<std::atomic<std::uint32_t>, stream_kinds> over_{};  // operations of each stream that are over
  std::size_t place_ = 0;                                        // of the computation that runs
  std::atomic<bool> failed_ = false;

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_, idle_;
  std::uint64_t round_ = 0;
  std::size_t busy_ = 0;
  bool ending_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

Streams::Streams(bool overlap) : impl_(std::make_unique<Impl>(*this, overlap)) {}
Streams::~Streams() = default;
void Streams::set_hooks(StreamHooks hooks) { impl_->set_hooks(std::move(hooks)); }
void Streams::run(const Program& program, StreamWork& work) { impl_->run(program, work); }
void Streams::next_part() { impl_->next_part(); }
void Streams::work_begins() { impl_->work_begins(); }
std::span<const Interval> Streams::intervals() const { return impl_->intervals(); }

}  // namespace lamina
