#include "checked_bytes.hpp"

#include <algorithm>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/base/hash.hpp>

#include <fmt/format.h>

namespace lamina::detail {

std::uint64_t block_checksum(std::uint64_t number, std::span<const std::byte> block) {
  return xxh3_64(block.data(), block.size(), number);
}

void CheckedBytes::set_checksums(std::uint64_t block_bytes, std::vector<std::uint64_t> checksums, std::string place) {
  require(block_bytes > 0 && block_bytes % 8 == 0 && checksums.size() == (size_ + block_bytes - 1) / block_bytes,
          "one checksum a block");
  block_bytes_ = block_bytes;
  checksums_ = std::move(checksums);
  place_ = std::move(place);
}

void CheckedBytes::read(const InputFile& file, std::uint64_t first, std::uint64_t count,
                        const std::function<void(std::span<const std::byte>)>& take) const {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(block_bytes_, size_)));
  for (const std::uint64_t end = first + count; first < end;) {
    const std::uint64_t number = first / block_bytes_, begin = number * block_bytes_;
    const std::uint64_t block_end = std::min(begin + block_bytes_, size_), part_end = std::min(block_end, end);
    const auto part = std::span(buffer).subspan(first - begin, part_end - first);
    if (checksums_.empty()) {
      file.read_at(offset_ + first, part);
    } else {
      const auto block = std::span(buffer).first(block_end - begin);
      file.read_at(offset_ + begin, block);
      if (block_checksum(number, block) != checksums_[number]) {
        throw DataError(one_line(
            fmt::format("{}: bytes {} to {} of the file are damaged", place_, offset_ + begin, offset_ + block_end - 1),
            "they do not have their checksum", "copy the file again, or make it again with lamina-tokenize"));
      }
    }
    take(part);
    first = part_end;
  }
}

}  // namespace lamina::detail
