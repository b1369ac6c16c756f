#include <fstream>
#include <sstream>
#include <string>

#include <lamina/base/address_space.hpp>
#include <lamina/base/error.hpp>
#include <lamina/base/text.hpp>

#include <fmt/format.h>
#include <sys/resource.h>

namespace lamina {

namespace {

// A number of kibibytes in /proc/self/status, in bytes; 0 where the file does not tell.
std::uint64_t own_size(std::string_view key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    std::uint64_t kibibytes = 0;
    std::istringstream(line.substr(key.size())) >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

struct Limit {
  decltype(RLIMIT_AS) resource;
  std::string_view name, size;
};
constexpr Limit limits[] = {{RLIMIT_AS, "ulimit -v", "VmSize:"}, {RLIMIT_DATA, "ulimit -d", "VmData:"}};

}  // namespace

std::optional<AddressSpace> address_space() {
  std::optional<AddressSpace> tightest;
  for (const Limit& limit : limits) {
    rlimit set{};
    if (::getrlimit(limit.resource, &set) != 0 || set.rlim_cur == RLIM_INFINITY) continue;
    const AddressSpace space{limit.name, set.rlim_cur, own_size(limit.size)};
    if (!tightest || space.left() < tightest->left()) tightest = space;
  }
  return tightest;
}

void require_address_space(std::uint64_t need, std::string_view what) {
  const std::optional<AddressSpace> space = address_space();
  if (!space || space->left() >= need) return;
  throw UsageError(one_line(
      fmt::format("{} of address space are too little for {}", human_bytes(space->limit), what),
      fmt::format("it needs {} more, and {} leaves {}", human_bytes(need), space->limit_name,
                  human_bytes(space->left())),
      fmt::format("raise {} (`unlimited` is usual; what a run takes is bounded by its plan)", space->limit_name)));
}

}  // namespace lamina
