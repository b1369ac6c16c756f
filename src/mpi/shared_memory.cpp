#include "handles.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

#include <lamina/mpi/check.hpp>

namespace lamina::mpi {

namespace {
constexpr std::size_t page = 4096;
}

struct SharedMemory::Handle {
  explicit Handle(MPI_Win window_) : window(window_) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (can_free()) MPI_Win_free(&window);
  }
  MPI_Win window;
  std::vector<std::byte*> parts;
  std::vector<std::size_t> bytes;
};

SharedMemory::SharedMemory(const Communicator& node, std::size_t bytes) {
  // The parts lie one after another from an address that MPI chooses; a page of slack lets each begin on a page. The
  // segment is mapped at a page boundary in every process, so all processes round to the same place.
  const std::size_t rounded = (bytes + page - 1) / page * page;
  MPI_Win window = MPI_WIN_NULL;
  void* own = nullptr;
  const auto size = static_cast<MPI_Aint>(rounded == 0 ? 0 : rounded + page);
  check(MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, node.handle_->comm, &own, &window), "MPI_Win_allocate_shared");
  handle_ = std::make_unique<Handle>(window);
  for (int rank = 0; rank < node.size(); ++rank) {
    MPI_Aint part_size = 0;
    int unit = 0;
    void* base = nullptr;
    check(MPI_Win_shared_query(window, rank, &part_size, &unit, &base), "MPI_Win_shared_query");
    const auto address = (reinterpret_cast<std::uintptr_t>(base) + page - 1) / page * page;
    handle_->parts.push_back(part_size == 0 ? nullptr : reinterpret_cast<std::byte*>(address));
    handle_->bytes.push_back(part_size == 0 ? 0 : static_cast<std::size_t>(part_size) - page);
  }
}

SharedMemory::SharedMemory(SharedMemory&&) noexcept = default;
SharedMemory& SharedMemory::operator=(SharedMemory&&) noexcept = default;
SharedMemory::~SharedMemory() = default;

std::byte* SharedMemory::part(int rank) const { return handle_->parts[static_cast<std::size_t>(rank)]; }
std::size_t SharedMemory::bytes(int rank) const { return handle_->bytes[static_cast<std::size_t>(rank)]; }

}  // namespace lamina::mpi
