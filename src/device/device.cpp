#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/base/text.hpp>
#include <lamina/device/device.hpp>

#include <fmt/format.h>

namespace lamina {

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  device_->bytes_in_use_ -= bytes_;
  device_->do_free(data_, bytes_);
}

Buffer Device::allocate(std::size_t bytes, std::string_view purpose) {
  if (bytes == 0) return {};
  void* data = do_allocate(bytes);
  if (data == nullptr) {
    throw UsageError(one_line(fmt::format("cannot allocate {} for {}", human_bytes(bytes), purpose),
                              fmt::format("{} has no room beyond the {} in use", name(), human_bytes(bytes_in_use_)),
                              "use more ranks or nodes, a smaller micro_batch, or a shorter seq_len"));
  }
  bytes_in_use_ += bytes;
  ++allocations_;
  return {this, data, bytes};
}

}  // namespace lamina
