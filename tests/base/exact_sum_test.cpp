#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <lamina/base/exact_sum.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

double sum_of(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double term : terms) sum.add(term);
  return sum.value();
}

std::vector<double> wild_terms() {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> fraction(-1, 1);
  std::uniform_int_distribution<int> exponent(-300, 300);
  std::vector<double> terms(2000);
  for (double& term : terms) term = std::ldexp(fraction(random), exponent(random));
  return terms;
}

TEST(ExactSum, OrderDoesNotMatter) {
  std::vector<double> terms = wild_terms();
  const double expected = sum_of(terms);
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(terms.begin(), terms.end(), random);
    EXPECT_EQ(sum_of(terms), expected);
  }
}

TEST(ExactSum, GroupingDoesNotMatter) {
  const std::vector<double> terms = wild_terms();
  ExactSum left, right;
  for (std::size_t i = 0; i < terms.size(); ++i) (i % 3 == 0 ? left : right).add(terms[i]);
  left.add(right);
  EXPECT_EQ(left.value(), sum_of(terms));
}

TEST(ExactSum, CancellationIsExact) {
  EXPECT_EQ(sum_of({1e90, 1.0, -1e90}), 1.0);
  EXPECT_EQ(sum_of({1e90, -1.0, -1e90}), -1.0);
  EXPECT_EQ(sum_of({0.1, -0.1}), 0.0);
}

TEST(ExactSum, SingleTermsComeBack) {
  for (const double term : {0.0, 1.0, -1.0, 0.1, -3.7e-80, 5e90, 0x1p-319, -0x1.fffffffffffffp319})
    EXPECT_EQ(sum_of({term}), term);
}

TEST(ExactSum, NegationNegates) {
  std::vector<double> terms = wild_terms();
  const double sum = sum_of(terms);
  for (double& term : terms) term = -term;
  EXPECT_EQ(sum_of(terms), -sum);
}

TEST(ExactSum, ManyEqualTerms) {
  ExactSum sum;
  for (int i = 0; i < 1000000; ++i) sum.add(0.1);
  EXPECT_NEAR(sum.value(), 100000.0, 1e-10);
}

TEST(ExactSum, NotFiniteStaysNotFinite) {
  EXPECT_TRUE(std::isnan(sum_of({1.0, std::numeric_limits<double>::infinity()})));
  EXPECT_TRUE(std::isnan(sum_of({std::numeric_limits<double>::quiet_NaN(), 1.0})));
}

TEST(ExactSum, WordsOfManyAccumulatorsAddUp) {
  ExactSum total;
  double expected = 0;
  for (int rank = 0; rank < 64; ++rank) {
    ExactSum part;
    part.add(rank - 31.5);
    expected += rank - 31.5;
    part.normalise();
    for (std::size_t i = 0; i < ExactSum::word_count; ++i) total.words()[i] += part.words()[i];
  }
  EXPECT_EQ(total.value(), expected);
}

}  // namespace
}  // namespace lamina
