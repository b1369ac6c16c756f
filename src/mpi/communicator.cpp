#include "handles.hpp"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/mpi/check.hpp>

#include <fmt/format.h>
#include <sched.h>

namespace lamina::mpi {

Request::Request() = default;
Request::Request(Request&&) noexcept = default;
Request& Request::operator=(Request&&) noexcept = default;
Request::~Request() = default;

bool Request::test() {
  if (!handle_ || handle_->request == MPI_REQUEST_NULL) return true;
  int done = 0;
  check(MPI_Test(&handle_->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

Communicator::Handle::Handle(MPI_Comm comm_, std::shared_ptr<Patience> patience_)
    : comm(comm_), patience(std::move(patience_)) {
  check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
}

Communicator::Handle::~Handle() {
  if (can_free()) MPI_Comm_free(&comm);
}

std::string Communicator::Handle::lost(Patience::Clock::time_point begin, std::string_view what) const {
  const std::chrono::duration<double> waited = Patience::Clock::now() - begin;
  return one_line(fmt::format("rank {} on {} waited {:.0f} s for {}", rank, host_name(), waited.count(), what),
                  patience->reason(),
                  "look at the other ranks' hosts and start the job again; run.deadline_s sets the patience");
}

void Communicator::Handle::complete(MPI_Request& request, std::string_view what) const {
  // Small messages arrive within microseconds: give way a few times before sleeping in growing steps.
  constexpr int yields = 20;
  constexpr std::chrono::microseconds first_nap{20}, longest_nap{500};
  const Patience::Clock::time_point begin = Patience::Clock::now();
  const Patience::Waiting waiting(*patience);
  std::chrono::microseconds nap = first_nap;
  for (int look = 0;; ++look) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
    if (done != 0) return;
    if (look < yields) {
      sched_yield();
      continue;
    }
    std::this_thread::sleep_for(nap);
    nap = std::min(nap * 2, longest_nap);
    if (interrupted) throw PeerError(fmt::format("rank {} on {} gave up waiting for {}", rank, host_name(), what));
    if (patience->exhausted(begin)) throw PeerError(lost(begin, what));
  }
}

Communicator::Communicator(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

Communicator Communicator::world(std::chrono::duration<double> deadline) {
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
  return Communicator(std::make_unique<Handle>(copy, std::make_shared<Patience>(deadline)));
}

int Communicator::rank() const { return handle_->rank; }
int Communicator::size() const { return handle_->size; }
Patience& Communicator::patience() const { return *handle_->patience; }

std::string Communicator::host_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME + 1> name{};
  int length = 0;
  check(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name");
  return {name.data(), static_cast<std::size_t>(length)};
}

void Communicator::interrupt() const { handle_->interrupted = true; }

Communicator Communicator::duplicate() const {
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(handle_->comm, &copy), "MPI_Comm_dup");
  return Communicator(std::make_unique<Handle>(copy, handle_->patience));
}

Communicator Communicator::split(int colour, int key) const {
  MPI_Comm part = MPI_COMM_NULL;
  check(MPI_Comm_split(handle_->comm, colour, key, &part), "MPI_Comm_split");
  return Communicator(std::make_unique<Handle>(part, handle_->patience));
}

Communicator Communicator::split_by_node() const {
  MPI_Comm part = MPI_COMM_NULL;
  check(MPI_Comm_split_type(handle_->comm, MPI_COMM_TYPE_SHARED, handle_->rank, MPI_INFO_NULL, &part),
        "MPI_Comm_split_type");
  return Communicator(std::make_unique<Handle>(part, handle_->patience));
}

Request Communicator::send(std::span<const float> data, int to, int tag) const {
  Request result;
  result.handle_ = std::make_unique<Request::Handle>();
  check(MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_FLOAT, to, tag, handle_->comm,
                  &result.handle_->request),
        "MPI_Isend");
  return result;
}

Request Communicator::receive(std::span<float> data, int from, int tag) const {
  Request result;
  result.handle_ = std::make_unique<Request::Handle>();
  check(MPI_Irecv(data.data(), static_cast<int>(data.size()), MPI_FLOAT, from, tag, handle_->comm,
                  &result.handle_->request),
        "MPI_Irecv");
  return result;
}

void Communicator::wait(Request& request, std::string_view what) const {
  if (!request.test()) handle_->complete(request.handle_->request, what);
}

void Communicator::wait_all(std::span<Request> requests, std::string_view what) const {
  for (Request& request : requests) wait(request, what);
}

}  // namespace lamina::mpi
