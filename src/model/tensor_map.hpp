// Where each role's tensor lies inside a unit's flat buffer, and views of them.
#pragma once

#include "families/family.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include <lamina/model/model_config.hpp>
#include <lamina/shard/unit_spec.hpp>
#include <lamina/tensor/tensor_view.hpp>

namespace lamina {

// The tensors of a unit in the order of the flat buffer.
[[nodiscard]] std::vector<NamedTensor> in_flat_order(std::vector<NamedTensor> tensors);

// Of the unit that serves the embedding stage, and of the head's (the same one when tied).
[[nodiscard]] std::vector<NamedTensor> embedding_unit_tensors(const ModelConfig& config);
[[nodiscard]] std::vector<NamedTensor> block_unit_tensors(const ModelConfig& config, std::int64_t layer);
[[nodiscard]] std::vector<NamedTensor> head_unit_tensors(const ModelConfig& config);

class TensorMap {
 public:
  // `tensors` in flat order.
  explicit TensorMap(const std::vector<NamedTensor>& tensors);

  [[nodiscard]] bool has(Role role) const { return at(role).elements > 0; }
  // The tensors first .. last, which must lie one after another, as one matrix; an empty view when `first` is absent.
  template <typename Pointer>
  [[nodiscard]] BasicTensorView<Pointer> matrix(Pointer base, Role first, Role last, std::int64_t rows,
                                                std::int64_t cols) const {
    if (!has(first)) return {};
    check_extent(first, last, rows * cols);
    return {base + at(first).offset, rows, cols};
  }
  template <typename Pointer>
  [[nodiscard]] BasicTensorView<Pointer> matrix(Pointer base, Role role, std::int64_t rows, std::int64_t cols) const {
    return matrix(base, role, role, rows, cols);
  }
  template <typename Pointer>
  [[nodiscard]] BasicTensorView<Pointer> vector(Pointer base, Role first, Role last, std::int64_t size) const {
    return matrix(base, first, last, 1, size);
  }
  template <typename Pointer>
  [[nodiscard]] BasicTensorView<Pointer> vector(Pointer base, Role role, std::int64_t size) const {
    return matrix(base, role, role, 1, size);
  }

 private:
  struct Place {
    std::int64_t offset = 0;
    std::int64_t elements = 0;
  };
  [[nodiscard]] const Place& at(Role role) const { return places_[static_cast<std::size_t>(role)]; }
  void check_extent(Role first, Role last, std::int64_t elements) const;

  std::array<Place, role_count> places_{};
};

}  // namespace lamina
