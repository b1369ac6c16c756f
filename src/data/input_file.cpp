#include "input_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <lamina/base/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lamina::detail {

InputFile::InputFile(const std::filesystem::path& path)
    : name_(path.string()), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct ::stat facts {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &facts) != 0) {
    const int error = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    throw DataError(
        one_line(fmt::format("cannot read {}", name_), std::strerror(error), "check the path and its permissions"));
  }
  if (!S_ISREG(facts.st_mode)) {
    ::close(descriptor_);
    throw DataError(one_line(fmt::format("cannot read {}", name_), "it is not a regular file", "name a file"));
  }
  size_ = static_cast<std::uint64_t>(facts.st_size);
}

InputFile::InputFile(InputFile&& other) noexcept
    : name_(std::move(other.name_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      throw DataError(one_line(fmt::format("{}: cannot read at byte {}", name_, offset),
                               n == 0 ? "the file ends there" : std::strerror(errno), "check that the file is whole"));
    }
    offset += static_cast<std::uint64_t>(n);
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

std::vector<std::byte> InputFile::head(std::size_t most) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(most, size_)));
  read_at(0, bytes);
  return bytes;
}

}  // namespace lamina::detail
