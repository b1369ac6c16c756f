#include <algorithm>
#include <cmath>
#include <numeric>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/base/random.hpp>
#include <lamina/model/sampler.hpp>

#include <fmt/format.h>

namespace lamina {

Sampler::Sampler(const SamplingOptions& options) : options_(options), key_(stream_key(options.seed, "sampling")) {
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    throw UsageError(one_line(fmt::format("cannot sample at temperature {}", options.temperature),
                              "it must not be negative", "use 0 for greedy"));
  }
  if (options.top_k < 0) {
    throw UsageError(one_line(fmt::format("cannot sample with top_k {}", options.top_k), "it must not be negative",
                              "use 0 for all tokens"));
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    throw UsageError(one_line(fmt::format("cannot sample with top_p {}", options.top_p), "it must lie in (0, 1]",
                              "use 1 for all tokens"));
  }
}

std::int32_t Sampler::pick(std::span<const float> logits) {
  require(!logits.empty(), "there is a vocabulary to sample from");
  if (!std::ranges::all_of(logits, [](float value) { return std::isfinite(value); })) {
    throw DataError(one_line("cannot pick a token", "the model's logits are not finite", "check the weights for NaN"));
  }
  if (options_.temperature == 0) {
    return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
  }
  return draw(logits);
}

std::int32_t Sampler::draw(std::span<const float> logits) {
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto logit = [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; };
  // Ties by id: the order, and with it the draw, is the same everywhere.
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
  };
  const auto vocabulary = static_cast<std::int64_t>(order_.size());
  const std::int64_t kept = options_.top_k > 0 ? std::min(options_.top_k, vocabulary) : vocabulary;
  std::partial_sort(order_.begin(), order_.begin() + kept, order_.end(), likelier);
  order_.resize(static_cast<std::size_t>(kept));

  probabilities_.clear();
  const double largest = static_cast<double>(logit(order_.front()));
  for (const std::int32_t id : order_) {
    probabilities_.push_back(std::exp((static_cast<double>(logit(id)) - largest) / options_.temperature));
  }
  double total = std::accumulate(probabilities_.begin(), probabilities_.end(), 0.0);
  if (options_.top_p < 1) {
    double reached = 0;
    std::size_t count = 0;
    while (count < probabilities_.size() && reached < options_.top_p * total) reached += probabilities_[count++];
    probabilities_.resize(count);
    total = reached;
  }
  const PhiloxBlock words = philox(key_, draws_++);
  double left = uniform_open(words[0], words[1]) * total;
  std::size_t chosen = 0;
  while (chosen + 1 < probabilities_.size() && left >= probabilities_[chosen]) left -= probabilities_[chosen++];
  return order_[chosen];
}

}  // namespace lamina
