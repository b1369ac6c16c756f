// Sizes as people and save_pretrained write them.
#pragma once

#include <cstdint>
#include <string_view>

namespace lamina {

// "5GB" (10^9), "300MB", "64KB", "2GiB" (2^30), "1000" (bytes); at least 1 byte. Throws UsageError naming `what`.
[[nodiscard]] std::uint64_t parse_file_size(std::string_view text, std::string_view what);

}  // namespace lamina
