// Label smoothing and z-loss against torch, against finite differences, and where they are off.
#include "reference.hpp"

#include <cmath>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

namespace lamina::test {
namespace {

using Labels = std::vector<std::int32_t>;

Labels some_labels(std::int64_t rows, std::int64_t vocabulary) {
  Labels labels;
  for (std::int64_t t = 0; t < rows; ++t) {
    labels.push_back(t % 3 == 2 ? ignored_label : static_cast<std::int32_t>((t * 5 + 2) % vocabulary));
  }
  return labels;
}

// Losses, then gradients.
std::vector<float> all_of(const Matrix& logits, const Labels& labels, const LossTerms& terms, Layout at = {},
                          std::int64_t threads = 1) {
  Placed p(logits, at);
  std::vector<float> all(labels.size(), std::nanf(""));
  ops_under_test(threads).cross_entropy(p.view(), labels, all, true, terms);
  EXPECT_TRUE(p.surroundings_intact());
  const std::vector<float> gradients = p.floats();
  all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

// Made by tools/goldens/make_loss_goldens.py.
TEST(LossTerms, TorchGivesTheSame) {
  const auto golden = nlohmann::json::parse(std::ifstream(LAMINA_SOURCE_DIR "/tests/backends/goldens/losses.json"));
  Matrix logits(golden["rows"], golden["vocabulary"]);
  logits.values = golden["logits"].get<std::vector<double>>();
  const Labels labels = golden["labels"];
  ASSERT_GE(golden["cases"].size(), 5U);
  for (const auto& c : golden["cases"]) {
    const LossTerms terms{c["label_smoothing"], c["z_loss"]};
    const std::vector<float> ours = all_of(logits, labels, terms);
    std::vector<double> want = c["losses"], gradients = c["gradients"];
    want.insert(want.end(), gradients.begin(), gradients.end());
    ASSERT_EQ(ours.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(ours[i]), want[i], 5e-7 * (1 + std::abs(want[i])))
          << "label_smoothing " << terms.label_smoothing << " z_loss " << terms.z_loss << " value " << i;
    }
  }
}

TEST(LossTerms, LossesAndGradientsMatchTheFormula) {
  struct Case {
    std::int64_t rows, vocabulary;
    double scale;
  };
  for (const Case& c : {Case{4, 1, 1}, Case{5, 7, 10}, Case{6, 300, 3}, Case{3, 2500, 1}}) {
    const Matrix logits = random_matrix(c.rows, c.vocabulary, 1, c.scale);
    const Labels labels = some_labels(c.rows, c.vocabulary);
    for (const LossTerms& terms : {LossTerms{0.1, 0}, LossTerms{0, 1e-2}, LossTerms{0.3, 1e-3}}) {
      const Function f = [&](const std::vector<Matrix>& m) { return cross_entropy(m[0], labels, terms); };
      Placed kept(logits, {3}), changed(logits, {3});
      std::vector<float> losses(labels.size(), std::nanf("")), again = losses;
      ops_under_test().cross_entropy(kept.view(), labels, losses, false, terms);
      ops_under_test().cross_entropy(changed.view(), labels, again, true, terms);
      EXPECT_TRUE(same_bits(losses, again));
      const Matrix want = f({logits});
      for (std::size_t t = 0; t < losses.size(); ++t) {
        EXPECT_NEAR(static_cast<double>(losses[t]), want.values[t], 2e-6 * (1 + std::abs(want.values[t]))) << t;
      }
      EXPECT_TRUE(close(kept.matrix(), logits, 0)) << "logits are only read without to_gradient";
      EXPECT_TRUE(is_gradient(f, {logits}, 0, Matrix(c.rows, 1, 1), changed.matrix()));
    }
  }
}

TEST(LossTerms, NeitherPlacementNorThreadsMatter) {
  const Matrix logits = random_matrix(37, 1100, 1, 2);
  const Labels labels = some_labels(37, 1100);
  const LossTerms terms{0.1, 1e-3};
  const std::vector<float> one = all_of(logits, labels, terms);
  EXPECT_TRUE(same_bits(all_of(logits, labels, terms, {5, 3}), one));
  EXPECT_TRUE(same_bits(all_of(logits, labels, terms, {}, 2), one));
  EXPECT_TRUE(same_bits(all_of(logits, labels, terms, {}, 3), one));
}

TEST(LossTerms, EachTermChangesTheLossAndZeroesDoNot) {
  const Matrix logits = random_matrix(3, 40, 1);
  const Labels labels = {1, 2, 3};
  const std::vector<float> plain = all_of(logits, labels, {});
  Placed p(logits);
  std::vector<float> losses(3);
  ops_under_test().cross_entropy(p.view(), labels, losses, true);
  losses.insert(losses.end(), plain.begin() + 3, plain.end());
  EXPECT_TRUE(same_bits(losses, plain));
  EXPECT_FALSE(same_bits(all_of(logits, labels, {0.1, 0}), plain));
  EXPECT_FALSE(same_bits(all_of(logits, labels, {0, 0.1}), plain));
}

// What is off must not turn a defined result into NaN.
TEST(LossTerms, MaskedLogits) {
  constexpr double masked = -std::numeric_limits<double>::infinity();
  Matrix logits(1, 9, 1.0);
  for (std::int64_t i = 1; i < 8; ++i) logits(0, i) = masked;
  const std::vector<float> with_z = all_of(logits, {0}, {0, 0.5});
  const double log_sum_exp = 1 + std::log(2.0);
  EXPECT_NEAR(static_cast<double>(with_z[0]), std::log(2.0) + 0.5 * log_sum_exp * log_sum_exp, 1e-6);
  EXPECT_EQ(with_z[5], 0.0F);
  EXPECT_TRUE(std::isinf(all_of(logits, {4}, {})[0]));
  // As in torch: a token that cannot be reached costs without bound once all tokens share the target.
  EXPECT_TRUE(std::isinf(all_of(logits, {0}, {0.1, 0})[0]));
}

TEST(LossTerms, NanIsNotHidden) {
  for (const LossTerms& terms : {LossTerms{0.1, 0}, LossTerms{0, 0.1}}) {
    Matrix logits(1, 13, 1.0);
    logits(0, 3) = std::nan("");
    EXPECT_TRUE(std::isnan(all_of(logits, {5}, terms)[0]));
  }
}

}  // namespace
}  // namespace lamina::test
