// XXH3-64 checksums (xxHash library): of one block, or of a stream in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lamina {

[[nodiscard]] std::uint64_t xxh3_64(const void* bytes, std::size_t size, std::uint64_t seed = 0);

// The same value as xxh3_64 over the concatenation of all pieces.
class Xxh3Stream {
 public:
  explicit Xxh3Stream(std::uint64_t seed = 0);
  void update(const void* bytes, std::size_t size);
  [[nodiscard]] std::uint64_t digest() const;

 private:
  struct Free {
    void operator()(void* state) const noexcept;
  };
  std::unique_ptr<void, Free> state_;
};

}  // namespace lamina
