// The bytes of a file, inflated if it is a gzip file, one after another.
#pragma once

#include "input_file.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lamina::detail {

class GzipStream {
 public:
  // Whether the file is gzip shows in its first bytes, whatever it is called.
  explicit GzipStream(InputFile file);
  GzipStream(GzipStream&&) noexcept;
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  GzipStream& operator=(GzipStream&&) = delete;
  ~GzipStream();

  [[nodiscard]] const InputFile& file() const { return file_; }
  // Bytes of the file that were taken so far.
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] bool at_end() const { return ended_; }

  // Appends at most `most` bytes (at least 1), fewer only at the end. Throws DataError for damaged gzip data, and for
  // data that end too early.
  void read(std::size_t most, std::string& out);

 private:
  struct Inflater;
  void inflate(std::size_t most, std::string& out);
  void refill();
  void end_member();

  InputFile file_;
  std::unique_ptr<Inflater> inflater_;  // of gzip files
  std::vector<std::byte> input_;
  std::uint64_t taken_ = 0;
  bool ended_ = false;
};

}  // namespace lamina::detail
