// Communicators, requests and shared windows, without mpi.h.
//
// Different communicators may be used by different threads at the same time (MPI_THREAD_MULTIPLE), one by one thread at
// a time. Every wait sleeps (ranks may outnumber cores) and has a deadline (patience.hpp): when nobody gets on for that
// long it throws PeerError naming rank, host and what it waited for. All collectives must be called by all ranks of the
// communicator in the same order.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/mpi/patience.hpp>

namespace lamina::mpi {

// An error that every rank of the communicator throws together: all can end in an orderly way, and one of them tells
// the user.
struct AgreedError : Error {
  using Error::Error;
};

// One non-blocking operation. Move-only; must be complete (see Communicator::wait) before it is destroyed, and the
// buffer must live as long.
class Request {
 public:
  Request();
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request();
  // True when complete or never started; drives MPI's progress.
  [[nodiscard]] bool test();

 private:
  friend class Communicator;
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

class Communicator {
 public:
  // A duplicate of MPI_COMM_WORLD, so that messages never mix with a library's.
  [[nodiscard]] static Communicator world(std::chrono::duration<double> deadline);
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  // Of this communicator and of all that were made from the same world.
  [[nodiscard]] Patience& patience() const;
  [[nodiscard]] static std::string host_name();

  [[nodiscard]] Communicator duplicate() const;
  // Ranks with the same colour (>= 0), ordered by key.
  [[nodiscard]] Communicator split(int colour, int key) const;
  // Ranks that can share memory (MPI_COMM_TYPE_SHARED), ordered as here.
  [[nodiscard]] Communicator split_by_node() const;

  void barrier(std::string_view what) const;
  void sum(std::span<std::int64_t> values, std::string_view what) const;  // in place, on every rank
  [[nodiscard]] std::int64_t max(std::int64_t value, std::string_view what) const;
  [[nodiscard]] std::int64_t min(std::int64_t value, std::string_view what) const;
  // Everybody's values, rank-major: size() x values.size().
  [[nodiscard]] std::vector<std::int64_t> all_gather(std::span<const std::int64_t> values, std::string_view what) const;
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& text, std::string_view what) const;
  [[nodiscard]] std::string broadcast(const std::string& text, int root, std::string_view what) const;

  [[nodiscard]] Request send(std::span<const float> data, int to, int tag) const;
  [[nodiscard]] Request receive(std::span<float> data, int from, int tag) const;
  void wait(Request& request, std::string_view what) const;
  void wait_all(std::span<Request> requests, std::string_view what) const;

  // Makes every wait of this communicator, present and future, throw PeerError. May be called from any thread.
  void interrupt() const;

  // Runs `work`, which is local (Patience::LocalWork), on every rank; when it throws an Error on any, every rank throws
  // AgreedError with the lowest such rank's code and message (with "rank R on HOST: " before it when it was not
  // everybody's). Other exceptions become what failure_of() makes of them.
  void agree(const std::function<void()>& work, std::string_view what) const;

 private:
  friend class SharedMemory;
  friend class Pulse;
  struct Handle;
  explicit Communicator(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
};

// Memory that all ranks of a (single-node) communicator see (MPI_Win_allocate_shared). Zeroed. Collective to make and
// to destroy.
class SharedMemory {
 public:
  // Every rank contributes `bytes` (may differ, may be 0); each part begins on a page.
  SharedMemory(const Communicator& node, std::size_t bytes);
  SharedMemory(SharedMemory&&) noexcept;
  SharedMemory& operator=(SharedMemory&&) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  [[nodiscard]] std::byte* part(int rank) const;  // where `rank`'s contribution begins in this process
  [[nodiscard]] std::size_t bytes(int rank) const;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace lamina::mpi
