#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>

#include <lamina/base/host_memory.hpp>

namespace lamina {

namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;  // not for "max"
}

std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  return in >> word ? number(word) : std::nullopt;
}

// The number behind `key` in a file of "KEY NUMBER" lines.
std::optional<std::uint64_t> entry(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string first, second;
    if (words >> first >> second && first == key) return number(second);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> least(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  return a && b ? std::min(a, b) : (a ? a : b);
}

struct GroupFiles {
  const char *limit, *used, *reclaimable;
};

// Of a control group and of those around it: a limit holds for everything inside.
std::optional<std::uint64_t> left_in_groups(const fs::path& mount, fs::path group, const GroupFiles& files) {
  std::optional<std::uint64_t> left;
  while (true) {
    const fs::path folder = mount / group.relative_path();
    const auto limit = number_in(folder / files.limit), used = number_in(folder / files.used);
    if (limit && used) {
      const std::uint64_t taken = *used - std::min(*used, entry(folder / "memory.stat", files.reclaimable).value_or(0));
      left = least(left, *limit - std::min(*limit, taken));
    }
    if (!group.has_relative_path()) return left;
    group = group.parent_path();
  }
}

std::optional<std::uint64_t> left_in_all_groups(const fs::path& root) {
  std::optional<std::uint64_t> left;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // "4:memory:/path" in version 1, "0::/path" in version 2
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",",
                      path = line.substr(second + 1);
    const fs::path mount = root / "sys/fs/cgroup";
    if (controllers == ",,")
      left = least(left, left_in_groups(mount, path, {"memory.max", "memory.current", "inactive_file"}));
    if (controllers.find(",memory,") != std::string::npos) {
      left = least(left, left_in_groups(mount / "memory", path,
                                        {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}));
    }
  }
  return left;
}

}  // namespace

std::optional<std::uint64_t> available_memory(const fs::path& root) {
  const std::optional<std::uint64_t> kibibytes = entry(root / "proc/meminfo", "MemAvailable:");
  const std::optional<std::uint64_t> host = kibibytes ? std::optional(*kibibytes * 1024) : std::nullopt;
  return least(host, left_in_all_groups(root));
}

}  // namespace lamina
