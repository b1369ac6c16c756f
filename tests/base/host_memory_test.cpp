#include <filesystem>
#include <fstream>

#include <lamina/base/host_memory.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

namespace lamina {
namespace {

class HostMemory : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / ("lamina_host_memory_" + std::to_string(::getpid()));
    write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 1000 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::filesystem::path root_;
};

TEST_F(HostMemory, IsWhatTheKernelSaysWithoutGroups) { EXPECT_EQ(available_memory(root_), 1000U * 1024); }

TEST_F(HostMemory, IsWhatTheNarrowestGroupOfVersion2Leaves) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/memory.current", "300\n");
  write("sys/fs/cgroup/job/memory.max", "500000\n");
  write("sys/fs/cgroup/job/memory.current", "200000\n");
  write("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 50000\n");
  EXPECT_EQ(available_memory(root_), 350000U);
}

TEST_F(HostMemory, IsWhatAGroupOfVersion1Leaves) {
  write("proc/self/cgroup", "5:cpu,memory:/job\n1:name=systemd:/\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "400000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "500000\n");  // over its limit
  EXPECT_EQ(available_memory(root_), 0U);
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(available_memory(root_), 1000U * 1024);
}

TEST_F(HostMemory, IsUnknownWithoutTheFiles) {
  EXPECT_FALSE(available_memory(root_ / "nowhere").has_value());
  EXPECT_GT(available_memory().value_or(1), 0U);
}

}  // namespace
}  // namespace lamina
