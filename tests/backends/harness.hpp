// Comparing a backend's operation with a plain reference in double: matrices, their placement in memory, finite
// differences.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <lamina/backends/backend.hpp>

#include <gtest/gtest.h>

namespace lamina::test {

// A matrix of doubles, the currency of the references.
struct Matrix {
  std::int64_t rows = 0, cols = 0;
  std::vector<double> values;

  Matrix() = default;
  Matrix(std::int64_t rows_, std::int64_t cols_, double value = 0)
      : rows(rows_), cols(cols_), values(static_cast<std::size_t>(rows_ * cols_), value) {}
  double& operator()(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * cols + j)]; }
  double operator()(std::int64_t i, std::int64_t j) const { return values[static_cast<std::size_t>(i * cols + j)]; }
};

// Standard normal numbers times `scale`, rounded to float; the same for the same seed.
[[nodiscard]] Matrix random_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed, double scale = 1);
[[nodiscard]] Matrix plus(const Matrix& a, const Matrix& b);

// How a matrix lies in memory: floats between rows, and floats before the first (64-byte aligned) position.
struct Layout {
  std::int64_t gap = 0;
  std::int64_t shift = 0;
};

// A matrix in memory as floats. Everything around its elements is NaN and must stay what it was.
class Placed {
 public:
  explicit Placed(const Matrix& m, Layout layout = {});
  // A matrix of NaN: the place of a result that must be overwritten.
  Placed(std::int64_t rows, std::int64_t cols, Layout layout = {});

  [[nodiscard]] TensorView view();
  [[nodiscard]] Matrix matrix() const;
  [[nodiscard]] std::vector<float> floats() const;  // rows one after another
  // Nothing outside the elements was written.
  [[nodiscard]] bool surroundings_intact() const;

 private:
  std::int64_t rows_, cols_, stride_, first_;
  std::vector<float> memory_;
};

// Every element of `got` within `tolerance` of `want`, relative to the largest element of `want` (at least 1e-3).
[[nodiscard]] ::testing::AssertionResult close(const Matrix& got, const Matrix& want, double tolerance);

// Bit equality, NaN included.
[[nodiscard]] ::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b);

// A function of several matrices, in double.
using Function = std::function<Matrix(const std::vector<Matrix>&)>;

// Compares `got`, the gradient of sum(cotangent * f(inputs)) with respect to inputs[which], with central differences:
// every element of small inputs; of large ones a sample of elements and the derivative along random directions, which
// sees all elements.
[[nodiscard]] ::testing::AssertionResult is_gradient(const Function& f, std::vector<Matrix> inputs, std::size_t which,
                                                     const Matrix& cotangent, const Matrix& got,
                                                     double tolerance = 2e-5);

// The CPU backend with this many threads.
[[nodiscard]] Ops& ops_under_test(std::int64_t threads = 1);

}  // namespace lamina::test
