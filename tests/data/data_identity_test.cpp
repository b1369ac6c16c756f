#include "data/memory_source.hpp"

#include <array>
#include <memory>
#include <optional>

#include <lamina/data/data_identity.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

using test::counting;
using test::MemorySource;

std::string identity(std::unique_ptr<TokenSource> source, const char* name = "a") {
  std::vector<std::unique_ptr<TokenSource>> sources;
  sources.push_back(std::move(source));
  return identify_data(TokenMixture(std::array{MixtureEntry{name, std::nullopt}}, std::move(sources), 3, 1));
}

std::string identity(std::vector<std::int32_t> ids, std::vector<std::int64_t> starts = {},
                     std::vector<std::uint8_t> mask = {}) {
  return identity(std::make_unique<MemorySource>(std::move(ids), std::move(starts), std::move(mask)));
}

std::string weighted(double a, double b) {
  std::vector<std::unique_ptr<TokenSource>> sources;
  for (const int base : {0, 100}) sources.push_back(std::make_unique<MemorySource>(counting(10, base)));
  return identify_data(TokenMixture(std::array{MixtureEntry{"a", a}, MixtureEntry{"b", b}}, std::move(sources), 3, 1));
}

TEST(DataIdentity, ChangesWithEverythingThatSamplesAreMadeOf) {
  const std::string plain = identity(counting(20));
  EXPECT_EQ(identity(counting(20)), plain);
  EXPECT_EQ(identity(std::make_unique<MemorySource>(counting(20)), "b"), plain) << "a file may move";
  EXPECT_NE(identity(counting(21)), plain);
  EXPECT_NE(identity(counting(20, 1)), plain);
  auto edited = counting(20);
  edited[19] = 7;
  EXPECT_NE(identity(edited), plain);
  EXPECT_NE(identity(counting(20), {0, 5}), identity(counting(20), {0, 6}));
  std::vector<std::uint8_t> mask(20, 1);
  const std::string masked = identity(counting(20), {}, mask);
  mask[4] = 0;
  EXPECT_NE(identity(counting(20), {}, mask), masked);
}

TEST(DataIdentity, KnowsWeightsAsShares) {
  EXPECT_EQ(weighted(0.7, 0.3), weighted(7, 3));
  EXPECT_NE(weighted(0.7, 0.3), weighted(0.6, 0.4));
}

// Larger than what is read: first and last token are, and the time does not grow.
TEST(DataIdentity, OfLargeSourcesSeesBothEnds) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(most_identified_tokens) + 12345, 1);
  const std::string plain = identity(ids);
  ids.back() = 2;
  EXPECT_NE(identity(ids), plain);
  ids.back() = 1;
  ids.front() = 2;
  EXPECT_NE(identity(ids), plain);
}

}  // namespace
}  // namespace lamina
