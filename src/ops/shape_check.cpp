#include "shape_check.hpp"

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina::detail {
namespace {

std::string text(const Operand& a) { return fmt::format("{} {}", a.name, shape_text(a.view)); }

// Elements from the first to one past the last.
std::int64_t extent(ConstTensorView v) { return v.size() == 0 ? 0 : (v.rows - 1) * v.stride + v.cols; }

bool overlap(ConstTensorView a, ConstTensorView b) {
  if (a.size() == 0 || b.size() == 0) return false;
  const auto first_a = reinterpret_cast<std::uintptr_t>(a.data);
  const auto first_b = reinterpret_cast<std::uintptr_t>(b.data);
  const auto end_a = reinterpret_cast<std::uintptr_t>(a.data + extent(a));
  const auto end_b = reinterpret_cast<std::uintptr_t>(b.data + extent(b));
  if (end_a <= first_b || end_b <= first_a) return false;
  // Columns of one matrix: the memory interleaves, the elements may not.
  if (a.rows > 1 && b.rows > 1 && a.stride == b.stride) {
    const auto distance = (static_cast<std::int64_t>(first_b) - static_cast<std::int64_t>(first_a)) /
                          static_cast<std::int64_t>(sizeof(float));
    const std::int64_t column = ((distance % a.stride) + a.stride) % a.stride;
    return column < a.cols || column + b.cols > a.stride;
  }
  return a.contiguous() && b.contiguous();
}

}  // namespace

std::string shape_text(ConstTensorView view) {
  if (view.contiguous()) return fmt::format("[{}, {}]", view.rows, view.cols);
  return fmt::format("[{}, {}] with stride {}", view.rows, view.cols, view.stride);
}

void ShapeCheck::fail(const std::string& what) const { throw InternalError(fmt::format("{}: {}", op_, what)); }

void ShapeCheck::valid(const Operand& a) const {
  const ConstTensorView& v = a.view;
  const bool sizes = v.rows >= 0 && v.cols >= 0 && (v.rows <= 1 || v.stride >= v.cols);
  if (!sizes) fail(fmt::format("{} is not a matrix with rows of its own", text(a)));
  if (v.size() > 0 && v.data == nullptr) fail(fmt::format("{} has no memory", text(a)));
}

void ShapeCheck::same_shape(const Operand& a, const Operand& b) const {
  valid(a);
  valid(b);
  if (a.view.rows != b.view.rows || a.view.cols != b.view.cols) {
    fail(fmt::format("{} and {} must have the same shape", text(a), text(b)));
  }
}

void ShapeCheck::shape(const Operand& a, std::int64_t rows, std::int64_t cols, const Operand& because_of) const {
  valid(a);
  if (a.view.rows != rows || a.view.cols != cols) {
    fail(fmt::format("{} does not fit {}: expected [{}, {}]", text(a), text(because_of), rows, cols));
  }
}

void ShapeCheck::length(std::string_view name, std::size_t size, std::int64_t expected,
                        const Operand& because_of) const {
  if (static_cast<std::int64_t>(size) != expected) {
    fail(fmt::format("{} [{}] does not fit {}: expected [{}]", name, size, text(because_of), expected));
  }
}

void ShapeCheck::apart(const Operand& a, const Operand& b) const {
  if (overlap(a.view, b.view)) fail(fmt::format("{} and {} share memory", text(a), text(b)));
}

void ShapeCheck::in_range(std::string_view name, std::span<const std::int32_t> values, std::int64_t limit,
                          std::string_view limit_name) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || values[i] >= limit) {
      fail(fmt::format("{}[{}] = {} is outside [0, {}), the {}", name, i, values[i], limit, limit_name));
    }
  }
}

void ShapeCheck::in_range_or(std::string_view name, std::span<const std::int32_t> values, std::int64_t limit,
                             std::int32_t exempt) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != exempt && (values[i] < 0 || values[i] >= limit)) {
      fail(fmt::format("{}[{}] = {} is neither {} nor in [0, {})", name, i, values[i], exempt, limit));
    }
  }
}

}  // namespace lamina::detail
