// Some of a unit's tensors, packed one after another: state that not every tensor has lies so. Pure arithmetic.
//
// What a range of the flat buffer holds of them is one range of the packed buffer, wherever it was cut, so shards and
// checkpoints of packed state need no more than the packed tensors' numbers.
#pragma once

#include <cstdint>
#include <vector>

#include <lamina/shard/flat_layout.hpp>

namespace lamina {

class PackedTensors {
 public:
  // Everything, padding included: packed offsets are flat offsets.
  PackedTensors() = default;
  // The tensors with kept[tensor], without padding; everything when that is all of them.
  PackedTensors(const UnitSpec& unit, std::vector<bool> kept);

  [[nodiscard]] bool whole() const { return kept_.empty(); }
  [[nodiscard]] bool holds(std::size_t tensor) const { return whole() || kept_.at(tensor); }
  // Packed elements that lie before a flat offset.
  [[nodiscard]] std::int64_t before(std::int64_t flat_offset) const;
  [[nodiscard]] FlatRange packed(FlatRange range) const { return {before(range.begin), before(range.end)}; }

 private:
  std::vector<bool> kept_;
  std::vector<std::int64_t> begins_;  // flat offsets of the tensors
  std::vector<std::int64_t> sizes_;
};

}  // namespace lamina
