// The checks that every public operation shares. A failed one throws InternalError of the form
// "linear_forward: x [4, 3] does not fit w [5, 2] (...)": the operation, the operands and their shapes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <lamina/tensor/tensor_view.hpp>

namespace lamina::detail {

// A view with the name it has in the operation's contract.
struct Operand {
  std::string_view name;
  ConstTensorView view;
};

class ShapeCheck {
 public:
  explicit ShapeCheck(std::string_view op) : op_(op) {}

  // Non-negative sizes, memory present, rows that do not overlap each other.
  void valid(const Operand& a) const;
  void same_shape(const Operand& a, const Operand& b) const;
  // `a` must be [rows, cols]; `why` names where the numbers come from.
  void shape(const Operand& a, std::int64_t rows, std::int64_t cols, const Operand& because_of) const;
  void vector(const Operand& a, std::int64_t size, const Operand& because_of) const { shape(a, 1, size, because_of); }
  void length(std::string_view name, std::size_t size, std::int64_t expected, const Operand& because_of) const;
  // No element belongs to both. Decided for views of equal stride and for views whose memory does not interleave.
  void apart(const Operand& a, const Operand& b) const;
  // Every value in [0, limit), or equal to `exempt`.
  void in_range(std::string_view name, std::span<const std::int32_t> values, std::int64_t limit,
                std::string_view limit_name) const;
  void in_range_or(std::string_view name, std::span<const std::int32_t> values, std::int64_t limit,
                   std::int32_t exempt) const;
  void that(bool condition, const std::string& what) const {
    if (!condition) fail(what);
  }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string_view op_;
};

// "[3, 4]" or "[3, 4] with stride 9".
[[nodiscard]] std::string shape_text(ConstTensorView view);

}  // namespace lamina::detail
