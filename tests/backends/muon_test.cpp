// Muon's passes against formulas in double, against torch, at odd places and cuts.
#include "reference.hpp"

#include <cmath>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

namespace lamina::test {
namespace {

using Floats = std::vector<float>;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = 0; k < a.cols; ++k) {
      for (std::int64_t j = 0; j < b.cols; ++j) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix t(a.cols, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.cols; ++j) t(j, i) = a(i, j);
  }
  return t;
}

// As published, transposing tall matrices first.
Matrix newton_schulz(const Matrix& x) {
  if (x.rows > x.cols) return transposed(newton_schulz(transposed(x)));
  double squares = 0;
  for (const double v : x.values) squares += v * v;
  Matrix y = x;
  for (double& v : y.values) v /= std::max(std::sqrt(squares), 1e-7);
  for (int i = 0; i < 5; ++i) {
    const Matrix gram = product(y, transposed(y)), square = product(gram, gram);
    Matrix p(gram.rows, gram.cols);
    for (std::size_t e = 0; e < p.values.size(); ++e)
      p.values[e] = -4.7750 * gram.values[e] + 2.0315 * square.values[e];
    const Matrix py = product(p, y);
    for (std::size_t e = 0; e < y.values.size(); ++e) y.values[e] = 3.4445 * y.values[e] + py.values[e];
  }
  return y;
}

Floats workspace_for(std::int64_t rows, std::int64_t cols) {
  return Floats(static_cast<std::size_t>(Ops::orthogonalise_workspace(rows, cols)),
                std::numeric_limits<float>::quiet_NaN());
}

Matrix orthogonalised(const Matrix& m, Layout layout = {}, std::int64_t threads = 1) {
  Placed x(m, layout);
  Floats workspace = workspace_for(m.rows, m.cols);
  ops_under_test(threads).orthogonalise(x.view(), workspace);
  EXPECT_TRUE(x.surroundings_intact());
  return x.matrix();
}

struct Shape {
  std::int64_t rows, cols;
};
constexpr Shape shapes[] = {{1, 1}, {1, 9}, {9, 1}, {5, 5}, {7, 40}, {40, 7}, {64, 64}, {130, 33}, {33, 130}, {300, 170}};

TEST(Orthogonalise, FollowsThePublishedIterations) {
  for (const auto [rows, cols] : shapes) {
    const Matrix x = random_matrix(rows, cols, 3, 1e-3);
    EXPECT_TRUE(close(orthogonalised(x), newton_schulz(x), 2e-5)) << rows << " x " << cols;
    EXPECT_TRUE(close(orthogonalised(x, {}, 2), newton_schulz(x), 2e-5)) << rows << " x " << cols << ", two threads";
  }
}

// The purpose: singular values near one, whatever they were. Of a matrix with orthogonal columns they can be seen.
TEST(Orthogonalise, BringsSingularValuesNearOne) {
  Matrix x(6, 4);
  const double sizes[] = {5, 1, 0.3, 0.05};
  for (std::int64_t j = 0; j < 4; ++j) x(j, j) = sizes[j];
  const Matrix y = orthogonalised(x);
  for (std::int64_t i = 0; i < 6; ++i) {
    for (std::int64_t j = 0; j < 4; ++j) {
      if (i == j) {
        EXPECT_GT(y(i, j), 0.6);
        EXPECT_LT(y(i, j), 1.3);
      } else {
        EXPECT_NEAR(y(i, j), 0, 1e-6);
      }
    }
  }
}

TEST(Orthogonalise, ZeroStaysZeroAndNaNShows) {
  EXPECT_EQ(orthogonalised(Matrix(3, 5)).values, Matrix(3, 5).values);
  Matrix broken = random_matrix(3, 5, 1);
  broken(1, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(orthogonalised(broken)(0, 0)));
}

// A rank orthogonalises where the matrix lies or in its staging: the bits must not tell which.
TEST(Orthogonalise, PlacementDoesNotMatter) {
  for (const auto [rows, cols] : shapes) {
    const Matrix x = random_matrix(rows, cols, 5);
    const Matrix first = orthogonalised(x);
    for (const std::int64_t shift : {1, 3, 8, 13}) EXPECT_EQ(orthogonalised(x, {0, shift}).values, first.values);
  }
}

TEST(Muon, CutsAndThreadsDoNotMatter) {
  constexpr std::size_t n = 40001;
  const auto values = [](std::uint64_t seed) {
    const Matrix r = random_matrix(1, n, seed);
    return Floats(r.values.begin(), r.values.end());
  };
  const auto update = [](Ops& ops, std::span<float> p, std::span<float> m, std::span<float> g) {
    ops.muon_direction(g, m, {0.95, true, 0.7});
    ops.muon_update(p, g, {1e-2, 0.1, 1.5});
  };
  Floats p = values(1), m = values(2), g = values(3), p2 = p, m2 = m, g2 = g, p3 = p, m3 = m, g3 = g;
  update(ops_under_test(), p, m, g);
  update(ops_under_test(2), p3, m3, g3);
  std::size_t begin = 0;
  for (const std::size_t end : {std::size_t{37}, std::size_t{50}, std::size_t{20011}, n}) {
    const auto part = [&](Floats& x) { return std::span(x).subspan(begin, end - begin); };
    update(ops_under_test(), part(p2), part(m2), part(g2));
    begin = end;
  }
  EXPECT_TRUE(same_bits(p, p2) && same_bits(m, m2) && same_bits(g, g2));
  EXPECT_TRUE(same_bits(p, p3) && same_bits(m, m3) && same_bits(g, g3));
}

double lr_scale(const std::string& adjust, double rows, double cols) {
  return adjust == "original" ? std::sqrt(std::max(1.0, rows / cols)) : 0.2 * std::sqrt(std::max(rows, cols));
}

// Made by tools/goldens/make_muon_goldens.py, which has torch iterate in fp32.
TEST(Goldens, TorchsMuonGivesTheSame) {
  const auto golden = nlohmann::json::parse(std::ifstream(LAMINA_SOURCE_DIR "/tests/backends/goldens/muon.json"));
  for (const auto& test : golden["cases"]) {
    const auto& o = test["options"];
    for (std::size_t i = 0; i < golden["shapes"].size(); ++i) {
      const std::int64_t rows = golden["shapes"][i][0], cols = golden["shapes"][i][1];
      Floats p = golden["starts"][i], m(p.size()), workspace = workspace_for(rows, cols);
      for (const auto& of_step : golden["gradients"]) {
        Floats g = of_step[i];
        ops_under_test().muon_direction(g, m, {o["momentum"], o["nesterov"], 1});
        ops_under_test().orthogonalise({g.data(), rows, cols}, workspace);
        ops_under_test().muon_update(
            p, g,
            {o["lr"], o["weight_decay"],
             lr_scale(o["adjust_lr_fn"], static_cast<double>(rows), static_cast<double>(cols))});
      }
      const Floats want = test["weights"][i];
      for (std::size_t e = 0; e < p.size(); ++e) {
        EXPECT_NEAR(p[e], want[e], 2e-6) << test["name"] << " matrix " << i << " element " << e;
      }
    }
  }
}

}  // namespace
}  // namespace lamina::test
