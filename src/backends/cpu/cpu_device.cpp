#include "cpu_device.hpp"

#include <cstdint>
#include <limits>

#include <sys/mman.h>
#include <unistd.h>

namespace lamina::cpu {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// What is mapped for a request; do_free computes the same from the same size.
std::size_t mapped_bytes(std::size_t bytes) { return round_up(bytes, bytes < huge_page ? page_size() : huge_page); }

std::byte* map(std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

}  // namespace

void* CpuDevice::do_allocate(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) return nullptr;
  const std::size_t size = mapped_bytes(bytes);
  if (bytes < huge_page) return map(size);
  // One huge page more than needed, then the ends that are not on the boundary go back.
  std::byte* base = map(size + huge_page);
  if (base == nullptr) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const std::size_t before = round_up(address, huge_page) - address;
  if (before > 0) munmap(base, before);
  if (huge_page - before > 0) munmap(base + before + size, huge_page - before);
  madvise(base + before, size, MADV_HUGEPAGE);  // advice: a kernel without huge pages serves small ones
  return base + before;
}

void CpuDevice::do_free(void* data, std::size_t bytes) noexcept { munmap(data, mapped_bytes(bytes)); }

}  // namespace lamina::cpu
