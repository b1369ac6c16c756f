#include "handles.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <lamina/mpi/check.hpp>

#include <fcntl.h>
#include <unistd.h>

namespace lamina::mpi {

namespace {

constexpr std::size_t page = 4096;

// The file behind the mapping that holds `address`; empty for private memory.
std::string backing_file(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx", &begin, &end) != 2 || wanted < begin || wanted >= end) continue;
    const std::size_t path = line.find('/');
    return path == std::string::npos ? std::string() : line.substr(path);
  }
  return {};
}

}  // namespace

// Open MPI 4 removes a window's file only when the window is freed, so a job that is killed would leave the memory of
// its slots behind on the node. The name is therefore removed as soon as every rank has mapped the file; the memory
// then lives as long as the processes. An empty file takes the name again for the moment in which MPI frees the window
// and removes what it made.
class HiddenFile {
 public:
  void hide(std::string path) {
    if (::unlink(path.c_str()) == 0) path_ = std::move(path);
  }
  void show() const {
    if (path_.empty()) return;
    const int file = ::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file >= 0) ::close(file);
  }
  void remove() const {
    if (!path_.empty()) ::unlink(path_.c_str());  // fails when MPI has done it
  }

 private:
  std::string path_;
};

struct SharedMemory::Handle {
  explicit Handle(MPI_Win window_) : window(window_) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (!can_free()) return;
    file.show();
    MPI_Win_free(&window);
    file.remove();
  }
  MPI_Win window;
  std::vector<std::byte*> parts;
  std::vector<std::size_t> bytes;
  HiddenFile file;  // of rank 0
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
  node.barrier("the mapping of shared memory");
  const auto first = std::ranges::find_if(handle_->parts, [](const std::byte* part) { return part != nullptr; });
  if (node.rank() == 0 && first != handle_->parts.end()) {
    const std::string path = backing_file(*first);
    if (!path.empty()) handle_->file.hide(path);
  }
}

SharedMemory::SharedMemory(SharedMemory&&) noexcept = default;
SharedMemory& SharedMemory::operator=(SharedMemory&&) noexcept = default;
SharedMemory::~SharedMemory() = default;

std::byte* SharedMemory::part(int rank) const { return handle_->parts[static_cast<std::size_t>(rank)]; }
std::size_t SharedMemory::bytes(int rank) const { return handle_->bytes[static_cast<std::size_t>(rank)]; }

}  // namespace lamina::mpi
