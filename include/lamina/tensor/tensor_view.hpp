// A non-owning view of a matrix: `rows` x `cols` elements, row-major, consecutive rows `stride` elements apart.
//
// Vectors are matrices of one row. Views are values; they never own or free. Whoever makes a view keeps the memory
// alive.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lamina {

template <typename Pointer>
struct BasicTensorView {
  Pointer data = nullptr;  // float*, or const float* for a read-only view
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  BasicTensorView() = default;
  BasicTensorView(Pointer data_, std::int64_t rows_, std::int64_t cols_)
      : BasicTensorView(data_, rows_, cols_, cols_) {}
  BasicTensorView(Pointer data_, std::int64_t rows_, std::int64_t cols_, std::int64_t stride_)
      : data(data_), rows(rows_), cols(cols_), stride(stride_) {}
  // A read-only view of a writable one.
  template <typename Other>
  requires(!std::is_same_v<Other, Pointer> && std::is_convertible_v<Other, Pointer>) BasicTensorView(
      const BasicTensorView<Other>& other)  // NOLINT(google-explicit-constructor): like const conversion
      : data(other.data), rows(other.rows), cols(other.cols), stride(other.stride) {}

  [[nodiscard]] bool empty() const { return data == nullptr; }
  [[nodiscard]] std::int64_t size() const { return rows * cols; }
  [[nodiscard]] bool contiguous() const { return stride == cols || rows <= 1; }
  [[nodiscard]] Pointer row(std::int64_t i) const { return data + i * stride; }
  [[nodiscard]] BasicTensorView row_range(std::int64_t first, std::int64_t count) const {
    return {data + first * stride, count, cols, stride};
  }
  [[nodiscard]] BasicTensorView col_range(std::int64_t first, std::int64_t count) const {
    return {data + first, rows, count, stride};
  }
};

using TensorView = BasicTensorView<float*>;
using ConstTensorView = BasicTensorView<const float*>;

}  // namespace lamina
