// Where each element of a unit lies in its flat buffer, and which block of it a rank owns. Pure arithmetic.
//
// The unit's tensors lie one after another without gaps; the buffer is padded at its end to shard_count x alignment
// elements and cut into shard_count equal blocks. A block may begin or end inside a tensor; nothing requires sizes to
// divide. Flat offsets below elements() do not depend on shard_count, which is why any world size can read any
// checkpoint.
#pragma once

#include <cstdint>
#include <vector>

#include <lamina/shard/unit_spec.hpp>

namespace lamina {

// A part of one tensor that lies inside a range of the flat buffer.
struct Span {
  std::size_t tensor = 0;          // index into UnitSpec::tensors
  std::int64_t tensor_offset = 0;  // first element, counted within the tensor
  std::int64_t flat_offset = 0;    // the same element, counted within the unit's flat buffer
  std::int64_t length = 0;         // elements; never 0
  bool operator==(const Span&) const = default;
};

struct FlatRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t length() const { return end - begin; }
  bool operator==(const FlatRange&) const = default;
};

class FlatLayout {
 public:
  // Elements; every block is a multiple of it: one page of fp32.
  static constexpr std::int64_t default_alignment = 1024;

  // shard_count >= 1, alignment >= 1; throws InternalError otherwise.
  FlatLayout(UnitSpec unit, std::int64_t shard_count, std::int64_t alignment = default_alignment);

  [[nodiscard]] const UnitSpec& unit() const { return unit_; }
  [[nodiscard]] std::int64_t shard_count() const { return shard_count_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }  // without padding
  [[nodiscard]] std::int64_t padded_elements() const { return shard_count_ * block_elements_; }
  [[nodiscard]] std::int64_t block_elements() const { return block_elements_; }  // of one shard, padding included
  [[nodiscard]] std::int64_t tensor_offset(std::size_t tensor) const { return offsets_[tensor]; }

  // Block `block` with its padding.
  [[nodiscard]] FlatRange block_range(std::int64_t block) const;
  // The part of block `block` that holds elements: possibly empty.
  [[nodiscard]] FlatRange owned_range(std::int64_t block) const;
  // The parts of tensors inside `range`, in order; padding is in none.
  [[nodiscard]] std::vector<Span> spans(FlatRange range) const;

 private:
  UnitSpec unit_;
  std::int64_t shard_count_;
  std::int64_t elements_ = 0;
  std::int64_t block_elements_ = 0;
  std::vector<std::int64_t> offsets_;
};

}  // namespace lamina
