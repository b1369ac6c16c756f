// A file opened for reading at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lamina::detail {

class InputFile {
 public:
  // Throws DataError if `path` is not a regular file that can be read.
  explicit InputFile(const std::filesystem::path& path);
  InputFile(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }  // when it was opened

  // Fills `out` from `offset`. Throws DataError with the offset when the file ends before or the system reports an
  // error. Safe from several threads.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;
  // The first bytes: as many as there are, at most `most`.
  [[nodiscard]] std::vector<std::byte> head(std::size_t most) const;

 private:
  std::string name_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace lamina::detail
