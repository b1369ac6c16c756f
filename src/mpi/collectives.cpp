#include "handles.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <lamina/base/failure.hpp>
#include <lamina/mpi/check.hpp>

#include <fmt/format.h>

namespace lamina::mpi {

void Communicator::barrier(std::string_view what) const {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(handle_->comm, &request), "MPI_Ibarrier");
  handle_->complete(request, what);
}

void Communicator::sum(std::span<std::int64_t> values, std::string_view what) const {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T, MPI_SUM,
                       handle_->comm, &request),
        "MPI_Iallreduce");
  handle_->complete(request, what);
}

namespace {

// Reduces one value over a communicator by gathering: small, and keeps one code path for waiting.
std::int64_t extreme(const Communicator& comm, std::int64_t value, std::string_view what, bool largest) {
  const std::vector<std::int64_t> all = comm.all_gather(std::span(&value, 1), what);
  return largest ? *std::max_element(all.begin(), all.end()) : *std::min_element(all.begin(), all.end());
}

}  // namespace

std::int64_t Communicator::max(std::int64_t value, std::string_view what) const {
  return extreme(*this, value, what, true);
}
std::int64_t Communicator::min(std::int64_t value, std::string_view what) const {
  return extreme(*this, value, what, false);
}

std::vector<std::int64_t> Communicator::all_gather(std::span<const std::int64_t> values, std::string_view what) const {
  std::vector<std::int64_t> all(values.size() * static_cast<std::size_t>(size()));
  MPI_Request request = MPI_REQUEST_NULL;
  const int count = static_cast<int>(values.size());
  check(MPI_Iallgather(values.data(), count, MPI_INT64_T, all.data(), count, MPI_INT64_T, handle_->comm, &request),
        "MPI_Iallgather");
  handle_->complete(request, what);
  return all;
}

std::vector<std::string> Communicator::all_gather(const std::string& text, std::string_view what) const {
  const auto length = static_cast<std::int64_t>(text.size());
  const std::vector<std::int64_t> lengths = all_gather(std::span(&length, 1), what);
  std::vector<int> counts(lengths.begin(), lengths.end()), begins(lengths.size());
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
  std::string joined(static_cast<std::size_t>(begins.back() + counts.back()), '\0');
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgatherv(text.data(), static_cast<int>(text.size()), MPI_CHAR, joined.data(), counts.data(),
                        begins.data(), MPI_CHAR, handle_->comm, &request),
        "MPI_Iallgatherv");
  handle_->complete(request, what);
  std::vector<std::string> result;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    result.push_back(joined.substr(static_cast<std::size_t>(begins[i]), static_cast<std::size_t>(counts[i])));
  }
  return result;
}

std::string Communicator::broadcast(const std::string& text, int root, std::string_view what) const {
  return all_gather(rank() == root ? text : std::string(), what)[static_cast<std::size_t>(root)];
}

void Communicator::agree(const std::function<void()>& work, std::string_view what) const {
  std::int64_t code = 0;
  std::string message;
  try {
    const Patience::LocalWork local(patience());
    work();
  } catch (const PeerError&) {
    throw;  // the others cannot be reached: nothing to agree on
  } catch (...) {
    Failure failure = failure_of(std::current_exception());
    code = static_cast<std::int64_t>(failure.code);
    message = std::move(failure.message);
  }
  const std::vector<std::int64_t> codes = all_gather(std::span(&code, 1), what);
  const auto failed = std::find_if(codes.begin(), codes.end(), [](std::int64_t c) { return c != 0; });
  if (failed == codes.end()) return;
  const std::vector<std::string> messages = all_gather(message, what);
  const std::vector<std::string> hosts = all_gather(host_name(), what);
  const auto who = static_cast<std::size_t>(failed - codes.begin());
  const bool everybody =
      std::all_of(messages.begin(), messages.end(), [&](const std::string& m) { return m == messages[who]; });
  throw AgreedError(static_cast<ExitCode>(*failed),
                    everybody ? messages[who] : fmt::format("rank {} on {}: {}", who, hosts[who], messages[who]));
}

}  // namespace lamina::mpi
