// An array of bytes inside a file, read in blocks that are proved by checksums where there are some.
#pragma once

#include "input_file.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lamina::detail {

// XXH3-64 of a block, seeded by its number, so that blocks cannot change places.
[[nodiscard]] std::uint64_t block_checksum(std::uint64_t number, std::span<const std::byte> block);

class CheckedBytes {
 public:
  // [offset, offset + size) of the file, which was checked to lie inside.
  CheckedBytes(std::uint64_t offset, std::uint64_t size) : offset_(offset), size_(size) {}
  // From now on each block of `block_bytes` (a multiple of 8; the last may be shorter) must have its checksum. `place`
  // is for messages.
  void set_checksums(std::uint64_t block_bytes, std::vector<std::uint64_t> checksums, std::string place);

  [[nodiscard]] std::uint64_t offset() const { return offset_; }

  // Hands out bytes [first, first + count) in consecutive parts; none of them ends inside an element of up to 8 bytes
  // unless first or count does. A block is read whole and proved each time, before any of its bytes is handed out: a
  // DataError names it. Safe from several threads.
  void read(const InputFile& file, std::uint64_t first, std::uint64_t count,
            const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  std::uint64_t offset_;
  std::uint64_t size_;
  std::uint64_t block_bytes_ = std::uint64_t{1} << 14;
  std::vector<std::uint64_t> checksums_;  // empty: none
  std::string place_;
};

}  // namespace lamina::detail
