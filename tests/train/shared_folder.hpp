// A fresh folder that all ranks of a test use, removed at its end.
#pragma once

#include <filesystem>
#include <string>

#include <lamina/mpi/communicator.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

namespace lamina::test {

class SharedFolder {
 public:
  // Collective to make and to destroy.
  SharedFolder(const mpi::Communicator& world, const std::string& name) : world_(world) {
    const std::string id = world.broadcast(std::to_string(::getpid()), 0, "the folder");
    path_ = std::filesystem::path(testing::TempDir()) / ("lamina_" + name + "_" + id);
    if (world.rank() == 0) {
      std::filesystem::remove_all(path_);
      std::filesystem::create_directories(path_);
    }
    world.barrier("the folder");
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  ~SharedFolder() {
    world_.barrier("the end");
    if (world_.rank() == 0) std::filesystem::remove_all(path_);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  const mpi::Communicator& world_;
  std::filesystem::path path_;
};

}  // namespace lamina::test
