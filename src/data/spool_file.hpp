// A temporary file that is appended to and then read back. It has no name: its space is free again when it is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lamina/base/hash.hpp>

namespace lamina::detail {

class SpoolFile {
 public:
  // In the folder of `path`, which is for messages and for the moment of creation. Errors are DataErrors naming it.
  explicit SpoolFile(std::string path);
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;
  ~SpoolFile();

  void append(std::span<const std::byte> bytes);
  void flush();
  // After flush.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // XXH3-64 of all bytes.
  [[nodiscard]] std::uint64_t digest() const { return hash_.digest(); }

 private:
  [[noreturn]] void fail(const char* attempt, int error) const;

  std::string path_;
  int descriptor_;
  std::uint64_t size_ = 0;
  std::vector<std::byte> pending_;
  Xxh3Stream hash_;
};

}  // namespace lamina::detail
