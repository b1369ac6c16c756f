// Host memory: zeroed anonymous pages, large blocks on 2 MiB boundaries so that the kernel can back them with huge
// pages.
#pragma once

#include <lamina/device/device.hpp>

namespace lamina::cpu {

class CpuDevice final : public Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "cpu"; }

 protected:
  void* do_allocate(std::size_t bytes) override;
  void do_free(void* data, std::size_t bytes) noexcept override;
};

}  // namespace lamina::cpu
