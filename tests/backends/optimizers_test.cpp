// Adam, SGD and Lion against their published formulas in double, against torch, and cut at odd places.
#include "reference.hpp"

#include <cmath>
#include <fstream>
#include <functional>

#include <nlohmann/json.hpp>

namespace lamina::test {
namespace {

using Doubles = std::vector<double>;
using Floats = std::vector<float>;

Doubles random(std::size_t n, std::uint64_t seed) {
  return random_matrix(1, static_cast<std::int64_t>(n), seed).values;
}

Matrix row(const Doubles& values) {
  Matrix m(1, static_cast<std::int64_t>(values.size()));
  m.values = values;
  return m;
}

// torch.optim.Adam's single-tensor path.
void adam(Doubles& p, Doubles& m, Doubles& v, const Doubles& grad, int t, const AdamWStep& o) {
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double g = grad[i] * o.grad_scale + o.weight_decay * p[i];
    m[i] += (g - m[i]) * (1 - o.beta1);
    v[i] = v[i] * o.beta2 + (1 - o.beta2) * g * g;
    p[i] -= o.lr / (1 - std::pow(o.beta1, t)) * m[i] / (std::sqrt(v[i]) / std::sqrt(1 - std::pow(o.beta2, t)) + o.eps);
  }
}

// torch.optim.SGD's single-tensor path: the buffer begins as the first gradient.
void sgd(Doubles& p, Doubles& b, const Doubles& grad, int t, const SgdStep& o) {
  for (std::size_t i = 0; i < p.size(); ++i) {
    double g = grad[i] * o.grad_scale + o.weight_decay * p[i];
    if (o.momentum != 0) {
      b[i] = t == 1 ? g : o.momentum * b[i] + g;
      g = o.nesterov ? g + o.momentum * b[i] : b[i];
    }
    p[i] -= o.lr * g;
  }
}

// Chen et al. 2023, algorithm 2.
void lion(Doubles& p, Doubles& m, const Doubles& grad, const LionStep& o) {
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double g = grad[i] * o.grad_scale;
    const double c = o.beta1 * m[i] + (1 - o.beta1) * g;
    const double sign = c > 0 ? 1 : (c < 0 ? -1 : 0);
    p[i] -= o.lr * (sign + o.weight_decay * p[i]);
    m[i] = o.beta2 * m[i] + (1 - o.beta2) * g;
  }
}

class Updates : public ::testing::TestWithParam<std::size_t> {
 protected:
  // Ten steps of both: `real` and `expected` get the gradient and the step's number.
  void compare(const std::function<void(Floats&, Floats&, Floats&, const Floats&, int)>& real,
               const std::function<void(Doubles&, Doubles&, Doubles&, const Doubles&, int)>& expected) {
    Doubles want = random(GetParam(), 1), want1(GetParam()), want2(GetParam());
    Floats p(want.begin(), want.end()), first(GetParam()), second(GetParam());
    for (int t = 1; t <= 10; ++t) {
      const Doubles grad = random(GetParam(), 100 + static_cast<std::uint64_t>(t));
      real(p, first, second, Floats(grad.begin(), grad.end()), t);
      expected(want, want1, want2, grad, t);
    }
    EXPECT_TRUE(close(row({p.begin(), p.end()}), row(want), 2e-6));
    EXPECT_TRUE(close(row({first.begin(), first.end()}), row(want1), 4e-6));
    EXPECT_TRUE(close(row({second.begin(), second.end()}), row(want2), 2e-6));
  }
};

TEST_P(Updates, AdamMatchesTorchFormula) {
  AdamWStep step{3e-3, 0.9, 0.999, 1e-8, 0.1, 1, 1, 0.25};
  compare(
      [&](Floats& p, Floats& m, Floats& v, const Floats& g, int t) {
        step.bias1 = 1 - std::pow(step.beta1, t);
        step.bias2 = 1 - std::pow(step.beta2, t);
        ops_under_test().adam(p, m, v, g, step);
      },
      [&](Doubles& p, Doubles& m, Doubles& v, const Doubles& g, int t) { adam(p, m, v, g, t, step); });
}

TEST_P(Updates, SgdMatchesTorchFormula) {
  for (const SgdStep& step :
       {SgdStep{1e-2, 0, 0.1, false, 0.25}, SgdStep{1e-2, 0.9, 0.1, false, 0.25}, SgdStep{1e-2, 0.8, 0, true, 0.25}}) {
    compare([&](Floats& p, Floats& b, Floats&, const Floats& g,
                int) { ops_under_test().sgd(p, step.momentum == 0 ? std::span<float>() : std::span(b), g, step); },
            [&](Doubles& p, Doubles& b, Doubles&, const Doubles& g, int t) { sgd(p, b, g, t, step); });
  }
}

TEST_P(Updates, LionMatchesThePaper) {
  const LionStep step{1e-3, 0.9, 0.99, 0.1, 0.25};
  compare([&](Floats& p, Floats& m, Floats&, const Floats& g, int) { ops_under_test().lion(p, m, g, step); },
          [&](Doubles& p, Doubles& m, Doubles&, const Doubles& g, int) { lion(p, m, g, step); });
}

INSTANTIATE_TEST_SUITE_P(Lengths, Updates, ::testing::Values(1, 7, 8, 33, 5000));

// In double: (1 - d) * sum of d^(n-k) p_k + d^n * start.
TEST_P(Updates, EmaIsTheWeightedSum) {
  for (const double decay : {0.0, 0.5, 0.9, 0.999}) {
    Doubles want = random(GetParam(), 1);
    Floats average(want.begin(), want.end());
    for (std::uint64_t t = 1; t <= 10; ++t) {
      const Doubles p = random(GetParam(), 200 + t);
      ops_under_test().ema(average, Floats(p.begin(), p.end()), decay);
      for (std::size_t i = 0; i < want.size(); ++i) want[i] = decay * want[i] + (1 - decay) * p[i];
    }
    EXPECT_TRUE(close(row({average.begin(), average.end()}), row(want), 1e-6)) << "decay " << decay;
  }
}

// A weight that no longer moves is its own average, whatever the rounding of the decay.
TEST(Ema, StaysWhereItHasArrived) {
  const Doubles r = random(1000, 9);
  const Floats p(r.begin(), r.end());
  Floats average = p;
  for (int i = 0; i < 100; ++i) ops_under_test().ema(average, p, 0.9999);
  EXPECT_TRUE(same_bits(average, p));
}

TEST(Lion, ZeroMovesNothingAndNaNShows) {
  Floats p{1, 1, 1, 1}, m(4);
  ops_under_test().lion(p, m, Floats{0, NAN, 2, -2}, {0.5, 0.9, 0.99, 0, 1});
  EXPECT_EQ(p[0], 1.0F);
  EXPECT_TRUE(std::isnan(p[1]));
  EXPECT_EQ(p[2], 0.5F);
  EXPECT_EQ(p[3], 1.5F);
}

// A shard or thread boundary anywhere must not change a bit.
TEST(Sharding, CutsAndThreadsDoNotMatter) {
  constexpr std::size_t n = 40001;
  const auto values = [](std::uint64_t seed) {
    const Doubles r = random(n, seed);
    return Floats(r.begin(), r.end());
  };
  const Floats g = values(3);
  using Update =
      std::function<void(Ops&, std::span<float>, std::span<float>, std::span<float>, std::span<const float>)>;
  const std::vector<Update> updates{
      [](Ops& ops, auto p, auto m, auto v, auto grad) {
        ops.adam(p, m, v, grad, {1e-3, 0.9, 0.999, 1e-8, 0.01, 0.1, 0.001, 0.7});
      },
      [](Ops& ops, auto p, auto m, auto, auto grad) {
        ops.sgd(p, m, grad, {1e-2, 0.9, 0.1, true, 0.7});
      },
      [](Ops& ops, auto p, auto, auto, auto grad) {
        ops.sgd(p, {}, grad, {1e-2, 0, 0.1, false, 0.7});
      },
      [](Ops& ops, auto p, auto m, auto, auto grad) {
        ops.lion(p, m, grad, {1e-3, 0.9, 0.99, 0.1, 0.7});
      },
      [](Ops& ops, auto p, auto m, auto, auto) { ops.ema(m, p, 0.999); },
  };
  for (const Update& update : updates) {
    Floats p = values(1), m = values(2), v(n, 0.25F), p2 = p, m2 = m, v2 = v, p3 = p, m3 = m, v3 = v;
    update(ops_under_test(), p, m, v, g);
    update(ops_under_test(2), p3, m3, v3, g);
    std::size_t begin = 0;
    for (const std::size_t end : {std::size_t{37}, std::size_t{50}, std::size_t{20011}, n}) {
      const auto part = [&](auto& x) { return std::span(x).subspan(begin, end - begin); };
      update(ops_under_test(), part(p2), part(m2), part(v2), part(g));
      begin = end;
    }
    EXPECT_TRUE(same_bits(p, p2) && same_bits(m, m2) && same_bits(v, v2)) << "cuts " << (&update - updates.data());
    EXPECT_TRUE(same_bits(p, p3) && same_bits(m, m3) && same_bits(v, v3)) << "threads " << (&update - updates.data());
  }
}

// Made by tools/goldens/make_optimizer_goldens.py.
TEST(Goldens, TorchGivesTheSame) {
  const auto golden = nlohmann::json::parse(std::ifstream(LAMINA_SOURCE_DIR "/tests/backends/goldens/optimizers.json"));
  Ops& ops = ops_under_test();
  using Update = std::function<void(std::span<float>, std::span<float>, std::span<float>, std::span<const float>, int)>;
  const auto with_bias = [](int t) {
    return AdamWStep{3e-3, 0.9, 0.95, 1e-8, 0.1, 1 - std::pow(0.9, t), 1 - std::pow(0.95, t), 1};
  };
  const std::vector<std::pair<std::string, Update>> cases{
      {"adamw", [&](auto p, auto m, auto v, auto g, int t) { ops.adamw(p, m, v, g, with_bias(t)); }},
      {"adam", [&](auto p, auto m, auto v, auto g, int t) { ops.adam(p, m, v, g, with_bias(t)); }},
      {"sgd",
       [&](auto p, auto, auto, auto g, int) {
         ops.sgd(p, {}, g, {3e-2, 0, 0.1, false, 1});
       }},
      {"sgd_momentum",
       [&](auto p, auto m, auto, auto g, int) {
         ops.sgd(p, m, g, {3e-2, 0.9, 0.1, false, 1});
       }},
      {"sgd_nesterov",
       [&](auto p, auto m, auto, auto g, int) {
         ops.sgd(p, m, g, {3e-2, 0.8, 0.01, true, 1});
       }},
  };
  for (const auto& [name, update] : cases) {
    Floats p = golden["start"], m(p.size()), v(p.size());
    int t = 0;
    for (const Floats g : golden["gradients"]) update(p, m, v, g, ++t);
    const Floats want = golden[name];
    for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p[i], want[i], 5e-7) << name << " element " << i;
  }
  // Of the weights that SGD walks through.
  Floats p = golden["start"], average = p;
  for (const Floats g : golden["gradients"]) {
    ops.sgd(p, {}, g, {3e-2, 0, 0.1, false, 1});
    ops.ema(average, p, 0.9);
  }
  const Floats want = golden["ema"];
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(average[i], want[i], 5e-7) << "ema element " << i;
}

}  // namespace
}  // namespace lamina::test
