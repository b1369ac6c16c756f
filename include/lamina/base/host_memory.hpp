// How much memory this host can still give to this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace lamina {

// Bytes: what the kernel calls available, or what the control groups of this process (v1 or v2) leave of their limits
// if that is less; page cache counts as free. None where Linux's files do not tell. `root`: where /proc and /sys are,
// for tests.
[[nodiscard]] std::optional<std::uint64_t> available_memory(const std::filesystem::path& root = "/");

}  // namespace lamina
