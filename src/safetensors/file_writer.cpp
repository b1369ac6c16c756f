#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <numeric>
#include <system_error>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/base/file.hpp>
#include <lamina/safetensors/writer.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace lamina {

namespace {

constexpr std::size_t staging_bytes = std::size_t{1} << 20;

std::string header_of(const std::vector<TensorToWrite>& tensors) {
  std::vector<SafetensorsEntry> entries;
  for (const TensorToWrite& tensor : tensors) {
    SafetensorsEntry entry;
    entry.name = tensor.name;
    entry.dtype = tensor.dtype;
    entry.shape = tensor.shape;
    entries.push_back(std::move(entry));
  }
  return make_safetensors_header(entries);
}

}  // namespace

std::int64_t TensorToWrite::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::uint64_t TensorToWrite::bytes() const { return static_cast<std::uint64_t>(elements()) * size_of(dtype); }

SafetensorsFileWriter::SafetensorsFileWriter(std::filesystem::path path, std::vector<TensorToWrite> tensors,
                                             ExitCode code)
    : path_(std::move(path)), temporary_(path_.string() + ".tmp"), tensors_(std::move(tensors)), code_(code) {
  for (const TensorToWrite& tensor : tensors_) missing_ += tensor.elements();
  const std::string header = header_of(tensors_);
  descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw failure(errno);
  staging_.resize(staging_bytes);
  put(header.data(), header.size());
}

SafetensorsFileWriter::~SafetensorsFileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

Error SafetensorsFileWriter::failure(int error_number) const {
  return {code_, one_line(fmt::format("cannot write {}", path_.string()), std::strerror(error_number),
                          "free space or choose another folder")};
}

void SafetensorsFileWriter::put(const void* bytes, std::size_t count) {
  checksum_.update(bytes, count);
  const auto* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t n = ::write(descriptor_, from, count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw failure(errno);
    from += n;
    count -= static_cast<std::size_t>(n);
  }
}

void SafetensorsFileWriter::write(std::span<const float> values) {
  require(static_cast<std::int64_t>(values.size()) <= missing_,
          "SafetensorsFileWriter: no more elements than declared");
  while (!values.empty()) {
    const TensorToWrite& tensor = tensors_[tensor_];
    const std::int64_t left = tensor.elements() - element_;
    if (left == 0) {
      ++tensor_;
      element_ = 0;
      continue;
    }
    const std::size_t size = size_of(tensor.dtype);
    const std::size_t count = std::min({values.size(), static_cast<std::size_t>(left), staging_bytes / size});
    from_floats(tensor.dtype, values.data(), staging_.data(), count);
    put(staging_.data(), count * size);
    element_ += static_cast<std::int64_t>(count);
    missing_ -= static_cast<std::int64_t>(count);
    values = values.subspan(count);
  }
}

// Some disks say no only when asked: what was written must come back.
void SafetensorsFileWriter::compare() const {
  Xxh3Stream stream;
  std::vector<std::byte> block(staging_bytes);
  off_t offset = 0;
  while (true) {
    const ssize_t n = ::pread(descriptor_, block.data(), block.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw failure(errno);
    if (n == 0) break;
    stream.update(block.data(), static_cast<std::size_t>(n));
    offset += n;
  }
  if (stream.digest() != checksum_.digest()) throw failure(EIO);
}

void SafetensorsFileWriter::finish() {
  require(missing_ == 0 && descriptor_ >= 0, "SafetensorsFileWriter: all declared elements, once");
  if (::fsync(descriptor_) != 0) throw failure(errno);
  compare();
  try {
    std::filesystem::rename(temporary_, path_);
    sync_path(path_.has_parent_path() ? path_.parent_path() : std::filesystem::path("."));
  } catch (const std::system_error& error) {
    throw failure(error.code().value());
  }
  if (::close(std::exchange(descriptor_, -1)) != 0) throw failure(errno);
}

}  // namespace lamina
