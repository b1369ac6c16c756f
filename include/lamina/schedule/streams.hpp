// Executes a schedule on real streams: computations on the calling thread, every other stream on a thread of its own.
//
// Events order the streams: an operation begins when all it waits for are over. Waiting threads sleep. When an
// operation throws, `interrupt` is called (to wake other streams out of waits of their own), every stream stops before
// its next operation, and run() throws the first error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <lamina/schedule/overlap.hpp>
#include <lamina/schedule/step_schedule.hpp>

namespace lamina {

// A schedule prepared for execution: what each stream runs.
class Program {
 public:
  explicit Program(std::vector<Operation> operations);

  [[nodiscard]] std::span<const Operation> operations() const { return operations_; }
  // Places in the list, in order.
  [[nodiscard]] std::span<const std::size_t> of(StreamKind stream) const {
    return streams_[static_cast<std::size_t>(stream)];
  }
  // How many operations of the place's own stream must be over for this one to be.
  [[nodiscard]] std::uint32_t position(std::size_t place) const { return positions_[place]; }

 private:
  std::vector<Operation> operations_;
  std::vector<std::size_t> streams_[stream_kinds];
  std::vector<std::uint32_t> positions_;
};

class Streams;

// What operations do. Called on the thread of the operation's stream, one at a time on each.
class StreamWork {
 public:
  virtual ~StreamWork() = default;
  // A backward in several parts is executed once, with its first part: it calls streams.next_part() whenever a part is
  // over, and what is left of the parts is over when it returns.
  virtual void execute(const Operation& operation, Streams& streams) = 0;
  // Wakes operations that wait for something outside the streams; may be called from any thread.
  virtual void interrupt() {}
};

// Test hooks: called on the stream's thread, before an operation begins (its waits are over) and after its work, before
// anybody is told.
struct StreamHooks {
  std::function<void(const Operation&)> before, after;
};

class Streams {
 public:
  // overlap false: everything runs on the calling thread, in the schedule's order.
  explicit Streams(bool overlap);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  void set_hooks(StreamHooks hooks);

  // Executes all operations of the program. After an error the streams must not be used again.
  void run(const Program& program, StreamWork& work);

  // From execute(), on the compute stream: see StreamWork.
  void next_part();
  // From execute(), on the compute stream: what came before was waiting, not work; the operation's interval begins now.
  void work_begins();

  // When each operation of the last run ran, in seconds of the steady clock.
  [[nodiscard]] std::span<const Interval> intervals() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lamina
