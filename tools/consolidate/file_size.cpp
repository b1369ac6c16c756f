#include "consolidate/file_size.hpp"

#include <charconv>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

struct SizeUnit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr SizeUnit size_units[] = {{"", 1},
                                   {"B", 1},
                                   {"KB", 1'000},
                                   {"MB", 1'000'000},
                                   {"GB", 1'000'000'000},
                                   {"TB", 1'000'000'000'000},
                                   {"KiB", std::uint64_t{1} << 10},
                                   {"MiB", std::uint64_t{1} << 20},
                                   {"GiB", std::uint64_t{1} << 30},
                                   {"TiB", std::uint64_t{1} << 40}};

}  // namespace

std::uint64_t parse_file_size(std::string_view text, std::string_view what) {
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const SizeUnit& unit : size_units) {
    std::uint64_t bytes = 0;
    if (error == std::errc() && rest == unit.name && !__builtin_mul_overflow(count, unit.bytes, &bytes) && bytes > 0) {
      return bytes;
    }
  }
  throw UsageError(one_line(fmt::format("\"{}\" is not a value of {}", text, what),
                            "it takes a whole number with KB, MB, GB, TB, KiB, MiB, GiB, TiB or nothing",
                            "write 5GB, say"));
}

}  // namespace lamina
