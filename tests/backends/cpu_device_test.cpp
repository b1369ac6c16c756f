#include <algorithm>
#include <cstdint>
#include <utility>

#include <lamina/backends/backend.hpp>
#include <lamina/base/error.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

TEST(CpuDevice, MemoryIsZeroedAlignedAndCounted) {
  const Backend backend = make_backend("cpu", 1);
  Device& device = *backend.device;
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{5000}, huge_page - 1, huge_page, 3 * huge_page + 12}) {
    Buffer buffer = device.allocate(bytes, "a test");
    EXPECT_EQ(device.bytes_in_use(), bytes);
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
    EXPECT_EQ(address % (bytes >= huge_page ? huge_page : 64), 0U);
    const float* values = buffer.floats();
    EXPECT_TRUE(std::all_of(values, values + bytes / sizeof(float), [](float v) { return v == 0; }));
    std::fill_n(buffer.floats(), bytes / sizeof(float), 1.0F);
    const Buffer moved = std::move(buffer);
    EXPECT_EQ(device.bytes_in_use(), bytes);
  }
  EXPECT_EQ(device.bytes_in_use(), 0U);
  EXPECT_EQ(device.allocations(), 5U);
}

TEST(CpuDevice, NothingIsAnEmptyBuffer) {
  const Backend backend = make_backend("cpu", 1);
  EXPECT_EQ(backend.device->allocate(0, "nothing").data(), nullptr);
  EXPECT_EQ(backend.device->allocations(), 0U);
}

TEST(CpuDevice, TooMuchIsRefusedByName) {
  const Backend backend = make_backend("cpu", 1);
  for (const std::size_t bytes : {std::size_t{1} << 60, ~std::size_t{0}}) {
    try {
      (void)backend.device->allocate(bytes, "the impossible buffer");
      ADD_FAILURE() << "allocated " << bytes << " bytes";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("the impossible buffer"), std::string::npos);
    }
    EXPECT_EQ(backend.device->bytes_in_use(), 0U);
  }
}

}  // namespace
}  // namespace lamina
