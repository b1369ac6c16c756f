// Streams of threads: order by events, parts, errors, hooks.
#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <thread>

#include <lamina/base/error.hpp>
#include <lamina/schedule/streams.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace lamina::test {
namespace {

ScheduleShape shape_of(std::size_t units, std::size_t buckets, std::size_t micro_steps, bool overlap) {
  ScheduleShape shape;
  for (std::size_t unit = 0; unit < units; ++unit) shape.stages.push_back({unit, unit > 0});
  shape.units.assign(units, {static_cast<std::int64_t>(buckets), buckets});
  shape.micro_steps = micro_steps;
  shape.load = true;
  shape.finish = true;
  shape.overlap = overlap;
  return shape;
}

void pause(std::uint32_t most_us) {
  thread_local std::mt19937 random(std::random_device{}());
  std::this_thread::sleep_for(std::chrono::microseconds(random() % most_us));
}

// Notes what ends in which order.
class Recorder : public StreamWork {
 public:
  explicit Recorder(bool advances = true) : advances_(advances) {}

  void execute(const Operation& operation, Streams& streams) override {
    pause(50);
    note(operation, 0);
    for (std::size_t part = 1; operation.kind == OperationKind::backward && part < operation.parts; ++part) {
      pause(50);
      if (advances_) streams.next_part();
      note(operation, part);
    }
  }

  std::vector<std::string> lines;
  std::vector<std::thread::id> compute_threads;

 private:
  void note(const Operation& operation, std::size_t part) {
    const std::lock_guard lock(mutex_);
    lines.push_back(std::string(name_of(operation.kind)) + " " + std::to_string(operation.unit) + " " +
                    std::to_string(operation.part + part) + " of micro-step " + std::to_string(operation.micro_step));
    if (operation.stream == StreamKind::compute) compute_threads.push_back(std::this_thread::get_id());
  }

  bool advances_;
  std::mutex mutex_;
};

void expect_waits_kept(const Program& program, std::span<const Interval> intervals) {
  for (std::size_t i = 0; i < program.operations().size(); ++i) {
    EXPECT_GE(intervals[i].end, intervals[i].start);
    for (const std::size_t wait : program.operations()[i].waits) EXPECT_LE(intervals[wait].end, intervals[i].start);
  }
  for (const StreamKind stream : {StreamKind::compute, StreamKind::gather, StreamKind::reduce, StreamKind::copy}) {
    double last = 0;
    for (const std::size_t place : program.of(stream)) {
      EXPECT_LE(last, intervals[place].start);
      last = intervals[place].end;
    }
  }
}

TEST(Streams, EveryOperationRunsOnceAfterWhatItWaitsFor) {
  for (const bool overlap : {true, false}) {
    for (const bool advances : {true, false}) {
      const Program program(step_schedule(shape_of(4, 3, 3, overlap)));
      Streams streams(overlap);
      for (int repeat = 0; repeat < 5; ++repeat) {
        Recorder work(advances);
        streams.run(program, work);
        EXPECT_EQ(work.lines.size(), program.operations().size());
        expect_waits_kept(program, streams.intervals());
        for (const std::thread::id& id : work.compute_threads) EXPECT_EQ(id, std::this_thread::get_id());
      }
    }
  }
}

TEST(Streams, OverlapHappens) {
  // A gather and a computation that each wait until the other has begun: only two threads get through.
  class Meeting : public StreamWork {
   public:
    void execute(const Operation& operation, Streams&) override {
      if (operation.kind == OperationKind::gather && operation.unit == 1) meet(gather_, forward_);
      if (operation.kind == OperationKind::forward && operation.unit == 0) meet(forward_, gather_);
    }
    bool met = true;

   private:
    void meet(std::atomic<bool>& mine, std::atomic<bool>& other) {
      mine = true;
      for (int look = 0; look < 5000 && !other; ++look) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (!other) met = false;
    }
    std::atomic<bool> gather_ = false, forward_ = false;
  } work;
  Streams streams(true);
  streams.run(Program(step_schedule(shape_of(3, 1, 1, true))), work);
  EXPECT_TRUE(work.met);
}

TEST(Streams, TheFirstErrorStopsAllStreamsAndWakesThem) {
  class Failing : public StreamWork {
   public:
    explicit Failing(OperationKind kind) : kind_(kind) {}
    void execute(const Operation& operation, Streams&) override {
      if (operation.kind == kind_ && operation.unit == 1) throw DataError("broken on purpose");
      // A reduction of another unit waits for a peer that never comes.
      while (operation.kind == OperationKind::reduce && !interrupted_)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (interrupted_) throw PeerError("gave up");
    }
    void interrupt() override { interrupted_ = true; }

   private:
    OperationKind kind_;
    std::atomic<bool> interrupted_ = false;
  };
  for (const OperationKind kind : {OperationKind::gather, OperationKind::forward, OperationKind::backward}) {
    Failing work(kind);
    Streams streams(true);
    const Program program(step_schedule(shape_of(3, 1, 2, true)));
    try {
      streams.run(program, work);
      FAIL() << name_of(kind);
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "broken on purpose");
    }
    EXPECT_THROW(streams.run(program, work), InternalError);
  }
}

TEST(Streams, HooksSeeEveryOperation) {
  std::atomic<std::size_t> before = 0, after = 0;
  Streams streams(true);
  streams.set_hooks({[&](const Operation&) { ++before; }, [&](const Operation&) { ++after; }});
  const Program program(step_schedule(shape_of(3, 1, 2, true)));
  Recorder work;
  streams.run(program, work);
  EXPECT_EQ(before, program.operations().size());
  EXPECT_EQ(after, program.operations().size());
}

TEST(Streams, APartTooManyIsAnError) {
  class Eager : public StreamWork {
   public:
    void execute(const Operation& operation, Streams& streams) override {
      for (std::size_t part = 0; operation.kind == OperationKind::backward && part < operation.parts; ++part)
        streams.next_part();
    }
  } work;
  Streams streams(true);
  EXPECT_THROW(streams.run(Program(step_schedule(shape_of(2, 2, 1, true))), work), InternalError);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need terabytes of address space
TEST(Streams, AThreadThatCannotBeMadeIsAnErrorNotAnEnd) {
  const auto ends = [] {
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    rlimit stacks{};
    ::getrlimit(RLIMIT_STACK, &stacks);
    // Room for the stack of one thread, not of three.
    const rlim_t limit = pages * 4096 + stacks.rlim_cur + stacks.rlim_cur / 2;
    const rlimit set{limit, limit};
    if (::setrlimit(RLIMIT_AS, &set) != 0) std::exit(9);
    try {
      const Streams streams(true);
    } catch (const std::system_error& error) {
      std::exit(error.code() == std::errc::resource_unavailable_try_again ? 0 : 1);
    }
    std::exit(2);
  };
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(ends(), testing::ExitedWithCode(0), "");
}
#endif

TEST(Program, RefusesWaitsForTheFuture) {
  std::vector<Operation> operations(2);
  operations[0].waits = {1};
  EXPECT_THROW(Program{operations}, InternalError);
}

}  // namespace
}  // namespace lamina::test
