// Where memory lives and which operations run on it.
#pragma once

#include <cstddef>
#include <string_view>

namespace lamina {

class Device;

// Owning, move-only memory of a device. Freed on destruction; must not outlive its device.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] float* floats() const { return static_cast<float*>(data_); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  friend class Device;
  Buffer(Device* device, void* data, std::size_t bytes) : device_(device), data_(data), bytes_(bytes) {}
  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;

  // Zeroed memory, aligned for the device's widest accesses. Throws UsageError naming the size and `purpose` when there
  // is not enough. bytes == 0 gives an empty buffer.
  [[nodiscard]] Buffer allocate(std::size_t bytes, std::string_view purpose);
  [[nodiscard]] Buffer allocate_floats(std::size_t count, std::string_view purpose) {
    return allocate(count * sizeof(float), purpose);
  }
  [[nodiscard]] std::size_t bytes_in_use() const { return bytes_in_use_; }
  [[nodiscard]] std::size_t allocations() const { return allocations_; }  // made so far; constant after start-up

 protected:
  virtual void* do_allocate(std::size_t bytes) = 0;  // zeroed; nullptr when out of memory
  virtual void do_free(void* data, std::size_t bytes) noexcept = 0;

 private:
  friend class Buffer;
  std::size_t bytes_in_use_ = 0;
  std::size_t allocations_ = 0;
};

}  // namespace lamina
