#include "harness.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include <lamina/base/random.hpp>

#include <fmt/format.h>

namespace lamina::test {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

double largest(const Matrix& m) {
  double most = 0;
  for (const double v : m.values) most = std::max(most, std::abs(v));
  return most;
}

double loss(const Function& f, const std::vector<Matrix>& inputs, const Matrix& cotangent) {
  const Matrix y = f(inputs);
  double sum = 0;
  for (std::size_t i = 0; i < y.values.size(); ++i) sum += y.values[i] * cotangent.values[i];
  return sum;
}

double along(const Function& f, std::vector<Matrix>& inputs, std::size_t which, const Matrix& direction,
             const Matrix& cotangent) {
  constexpr double step = 1e-5;
  const std::vector<double> kept = inputs[which].values;
  const auto move = [&](double by) {
    for (std::size_t i = 0; i < kept.size(); ++i) inputs[which].values[i] = kept[i] + by * direction.values[i];
    return loss(f, inputs, cotangent);
  };
  const double difference = (move(step) - move(-step)) / (2 * step);
  inputs[which].values = kept;
  return difference;
}

// Indices to look at one by one.
std::vector<std::size_t> sample(std::size_t size) {
  constexpr std::size_t most = 64;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < std::min(size, most); ++i) {
    chosen.push_back(size <= most ? i : static_cast<std::size_t>(permute_index(17, size, i)));
  }
  return chosen;
}

}  // namespace

Matrix random_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed, double scale) {
  Matrix m(rows, cols);
  for (std::size_t i = 0; i < m.values.size(); ++i) {
    m.values[i] = static_cast<double>(static_cast<float>(scale * normal_at(stream_key(seed, "test"), i)));
  }
  return m;
}

Matrix plus(const Matrix& a, const Matrix& b) {
  Matrix sum = a;
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += b.values[i];
  return sum;
}

Placed::Placed(std::int64_t rows, std::int64_t cols, Layout layout)
    : rows_(rows),
      cols_(cols),
      stride_(cols + layout.gap),
      memory_(static_cast<std::size_t>(rows * stride_ + layout.shift + 48), nan) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
  first_ = static_cast<std::int64_t>((64 - address % 64) % 64 / sizeof(float)) + 16 + layout.shift;
}

Placed::Placed(const Matrix& m, Layout layout) : Placed(m.rows, m.cols, layout) {
  const TensorView target = view();
  for (std::int64_t i = 0; i < rows_; ++i) {
    for (std::int64_t j = 0; j < cols_; ++j) target.row(i)[j] = static_cast<float>(m(i, j));
  }
}

TensorView Placed::view() { return {memory_.data() + first_, rows_, cols_, stride_}; }

std::vector<float> Placed::floats() const {
  std::vector<float> all;
  for (std::int64_t i = 0; i < rows_; ++i) {
    const float* row = memory_.data() + first_ + i * stride_;
    all.insert(all.end(), row, row + cols_);
  }
  return all;
}

Matrix Placed::matrix() const {
  Matrix m(rows_, cols_);
  const std::vector<float> all = floats();
  for (std::size_t i = 0; i < all.size(); ++i) m.values[i] = static_cast<double>(all[i]);
  return m;
}

bool Placed::surroundings_intact() const {
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) - first_;
    const bool element = at >= 0 && at / stride_ < rows_ && at % stride_ < cols_;
    if (!element && !std::isnan(memory_[i])) return false;
  }
  return true;
}

::testing::AssertionResult close(const Matrix& got, const Matrix& want, double tolerance) {
  if (got.rows != want.rows || got.cols != want.cols) return ::testing::AssertionFailure() << "shapes differ";
  const double allowed = tolerance * std::max(largest(want), 1e-3);
  for (std::int64_t i = 0; i < want.rows; ++i) {
    for (std::int64_t j = 0; j < want.cols; ++j) {
      if (!(std::abs(got(i, j) - want(i, j)) <= allowed)) {
        return ::testing::AssertionFailure() << fmt::format("element ({}, {}): got {}, want {}, allowed difference {}",
                                                            i, j, got(i, j), want(i, j), allowed);
      }
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) {
      return ::testing::AssertionFailure() << fmt::format("element {}: {:a} and {:a}", i, a[i], b[i]);
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult is_gradient(const Function& f, std::vector<Matrix> inputs, std::size_t which,
                                       const Matrix& cotangent, const Matrix& got, double tolerance) {
  const Matrix& x = inputs[which];
  if (got.rows != x.rows || got.cols != x.cols) return ::testing::AssertionFailure() << "shapes differ";
  const double scale = std::max(largest(got), 1.0);
  for (const std::size_t i : sample(x.values.size())) {
    Matrix unit(x.rows, x.cols);
    unit.values[i] = 1;
    const double want = along(f, inputs, which, unit, cotangent);
    if (!(std::abs(got.values[i] - want) <= tolerance * scale)) {
      return ::testing::AssertionFailure()
             << fmt::format("input {} element {}: got {}, finite difference {}", which, i, got.values[i], want);
    }
  }
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Matrix direction = random_matrix(x.rows, x.cols, 1000 + seed);
    double slope = 0;
    for (std::size_t i = 0; i < got.values.size(); ++i) slope += got.values[i] * direction.values[i];
    const double want = along(f, inputs, which, direction, cotangent);
    const double allowed = tolerance * scale * std::sqrt(static_cast<double>(got.values.size()) + 1);
    if (!(std::abs(slope - want) <= allowed)) {
      return ::testing::AssertionFailure()
             << fmt::format("input {} along direction {}: got {}, finite difference {}", which, seed, slope, want);
    }
  }
  return ::testing::AssertionSuccess();
}

Ops& ops_under_test(std::int64_t threads) {
  static std::map<std::int64_t, Backend> backends;
  const auto found = backends.find(threads);
  if (found != backends.end()) return *found->second.ops;
  return *backends.emplace(threads, make_backend("cpu", threads)).first->second.ops;
}

}  // namespace lamina::test
