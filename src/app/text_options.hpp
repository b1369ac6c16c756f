// Options that the commands which write text with a model share.
#pragma once

#include <cstdint>
#include <string>

#include <lamina/config/argument_parser.hpp>
#include <lamina/model/sampler.hpp>

namespace lamina {

struct TextOptions {
  std::string model, tokenizer = "auto", backend = "cpu";
  std::int64_t max_tokens = 200, top_k = 0, threads = 1;
  double temperature = 0.8, top_p = 0.95;
  std::uint64_t seed = 0;
  bool greedy = false;

  // `turn` makes another sequence of draws of the same seed.
  [[nodiscard]] SamplingOptions sampling(std::uint64_t turn = 0) const;
};

// Binds them all to `options`, which must outlive the parser.
void declare_model(ArgumentParser& parser, TextOptions& options);
void declare_sampling(ArgumentParser& parser, TextOptions& options);
void declare_machine(ArgumentParser& parser, TextOptions& options);

}  // namespace lamina
