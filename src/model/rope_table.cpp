#include "rope_table.hpp"

#include <cmath>
#include <numbers>

namespace lamina {
namespace {

double llama3_frequency(const RopeConfig& rope, double frequency) {
  const auto original = static_cast<double>(rope.original_max_positions);
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < original / rope.high_freq_factor) return frequency;
  if (wavelength > original / rope.low_freq_factor) return frequency / rope.factor;
  const double smooth = (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
}

}  // namespace

std::vector<double> rope_frequencies(const RopeConfig& rope, std::int64_t head_dim) {
  std::vector<double> frequencies;
  for (std::int64_t pair = 0; pair < head_dim / 2; ++pair) {
    const double exponent = 2 * static_cast<double>(pair) / static_cast<double>(head_dim);
    const double frequency = std::pow(rope.theta, -exponent);
    switch (rope.scaling) {
      case RopeScaling::none:
        frequencies.push_back(frequency);
        break;
      case RopeScaling::linear:
        frequencies.push_back(frequency / rope.factor);
        break;
      case RopeScaling::llama3:
        frequencies.push_back(llama3_frequency(rope, frequency));
        break;
    }
  }
  return frequencies;
}

std::vector<float> make_rope_table(const ModelConfig& config, std::int64_t positions) {
  const std::vector<double> frequencies = rope_frequencies(config.rope, config.head_dim);
  std::vector<float> table;
  table.reserve(static_cast<std::size_t>(positions) * 2 * frequencies.size());
  for (std::int64_t position = 0; position < positions; ++position) {
    for (const double frequency : frequencies) {
      table.push_back(static_cast<float>(std::cos(static_cast<double>(position) * frequency)));
    }
    for (const double frequency : frequencies) {
      table.push_back(static_cast<float>(std::sin(static_cast<double>(position) * frequency)));
    }
  }
  return table;
}

}  // namespace lamina
