// A token source made of vectors.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <lamina/data/token_source.hpp>

namespace lamina::test {

class MemorySource : public TokenSource {
 public:
  explicit MemorySource(std::vector<std::int32_t> ids, std::vector<std::int64_t> starts = {},
                        std::vector<std::uint8_t> mask = {})
      : ids_(std::move(ids)), mask_(std::move(mask)) {
    name_ = "memory";
    format_ = "memory";
    size_ = static_cast<std::int64_t>(ids_.size());
    document_starts_ = std::move(starts);
  }
  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    check_range(first, out.size());
    std::copy_n(ids_.begin() + first, out.size(), out.begin());
  }
  [[nodiscard]] bool has_loss_mask() const override { return !mask_.empty(); }
  void read_loss_mask(std::int64_t first, std::span<std::uint8_t> out) const override {
    check_range(first, out.size());
    std::copy_n(mask_.begin() + first, out.size(), out.begin());
  }

 private:
  std::vector<std::int32_t> ids_;
  std::vector<std::uint8_t> mask_;
};

// 0, 1, ... count - 1, plus `base`.
inline std::vector<std::int32_t> counting(std::int32_t count, std::int32_t base = 0) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), base);
  return ids;
}

}  // namespace lamina::test
