#include "spool_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <lamina/base/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace lamina::detail {

namespace {
constexpr std::size_t pending_bytes = std::size_t{1} << 20;
}

SpoolFile::SpoolFile(std::string path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) fail("create", errno);
  // Nameless from now on: nothing is left behind whatever ends the process.
  ::unlink(path_.c_str());
}

SpoolFile::~SpoolFile() { ::close(descriptor_); }

void SpoolFile::fail(const char* attempt, int error) const {
  throw DataError(one_line(fmt::format("cannot {} {}", attempt, path_), std::strerror(error),
                           "free space or choose another folder"));
}

void SpoolFile::append(std::span<const std::byte> bytes) {
  hash_.update(bytes.data(), bytes.size());
  size_ += bytes.size();
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  if (pending_.size() >= pending_bytes) flush();
}

void SpoolFile::flush() {
  std::span<const std::byte> left(pending_);
  while (!left.empty()) {
    const ssize_t n = ::write(descriptor_, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write", errno);
    left = left.subspan(static_cast<std::size_t>(n));
  }
  pending_.clear();
}

void SpoolFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("read back", n == 0 ? EIO : errno);
    offset += static_cast<std::uint64_t>(n);
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace lamina::detail
