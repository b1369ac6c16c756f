// Memory that a kernel needs while it runs: one block for each thread and purpose, grown when needed, kept for the next
// call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace lamina::cpu {

class Scratch {
 public:
  // At least `count` floats, aligned to a cache line, with any content. Valid until the next call on the same object.
  float* floats(std::int64_t count) {
    const auto needed = static_cast<std::size_t>(count);
    if (needed > size_) {
      block_.reset();  // the old content is not kept: free it first
      block_.reset(static_cast<float*>(::operator new(needed * sizeof(float), alignment)));
      size_ = needed;
    }
    return block_.get();
  }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(float* p) const noexcept { ::operator delete(p, alignment); }
  };
  std::unique_ptr<float, Free> block_;
  std::size_t size_ = 0;
};

}  // namespace lamina::cpu
