#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/safetensors/reader.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lamina {

namespace {

constexpr std::size_t staging_bytes = std::size_t{1} << 20;

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view why) {
  throw DataError(one_line(fmt::format("cannot read {}", path.string()), why, "check the path and its permissions"));
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail(path_, std::strerror(errno));
  try {
    struct stat facts {};
    if (::fstat(descriptor_, &facts) != 0) fail(path_, std::strerror(errno));
    if (!S_ISREG(facts.st_mode)) fail(path_, "it is not a file");
    const auto file_bytes = static_cast<std::uint64_t>(facts.st_size);
    std::byte first_bytes[safetensors_length_bytes] = {};
    const std::size_t have = std::min<std::size_t>(file_bytes, safetensors_length_bytes);
    read_bytes(0, first_bytes, have);
    const std::uint64_t length =
        safetensors_header_length(std::span(first_bytes).first(have), file_bytes, path_.string());
    std::string text(length, '\0');
    read_bytes(safetensors_length_bytes, text.data(), text.size());
    header_ = parse_safetensors_header(text, file_bytes - safetensors_length_bytes - length, path_.string());
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      header_(std::move(other.header_)),
      staging_(std::move(other.staging_)),
      bytes_read_(other.bytes_read_) {}

void SafetensorsFile::read_bytes(std::uint64_t offset, void* target, std::size_t count) {
  auto* to = static_cast<char*>(target);
  while (count > 0) {
    const ssize_t n = ::pread(descriptor_, to, count, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, std::strerror(errno));
    if (n == 0) fail(path_, "it became shorter while it was read");
    to += n;
    offset += static_cast<std::uint64_t>(n);
    count -= static_cast<std::size_t>(n);
  }
}

void SafetensorsFile::read(std::size_t index, std::int64_t first, std::span<float> out) {
  const SafetensorsEntry& entry = header_.tensors.at(index);
  const auto count = static_cast<std::int64_t>(out.size());
  require(first >= 0 && first <= entry.elements && count <= entry.elements - first,
          "SafetensorsFile: a range inside the tensor");
  if (!entry.dtype) {
    throw DataError(one_line(fmt::format("cannot read tensor \"{}\" of {}", entry.name, path_.string()),
                             fmt::format("its dtype is {}", entry.dtype_name), "weights must be F32, F16 or BF16"));
  }
  const std::size_t size = size_of(*entry.dtype);
  std::uint64_t offset = header_.data_start + entry.begin + static_cast<std::uint64_t>(first) * size;
  bytes_read_ += out.size_bytes() / sizeof(float) * size;
  if (*entry.dtype == DType::f32) {
    read_bytes(offset, out.data(), out.size_bytes());
    return;
  }
  staging_.resize(std::min(staging_bytes, std::max(staging_.size(), out.size() * size)));
  while (!out.empty()) {
    const std::size_t piece = std::min(out.size(), staging_.size() / size);
    read_bytes(offset, staging_.data(), piece * size);
    to_floats(*entry.dtype, staging_.data(), out.data(), piece);
    offset += piece * size;
    out = out.subspan(piece);
  }
}

}  // namespace lamina
