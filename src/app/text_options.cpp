#include "text_options.hpp"

namespace lamina {

SamplingOptions TextOptions::sampling(std::uint64_t turn) const {
  return {greedy ? 0.0 : temperature, top_k, top_p, seed + turn};
}

void declare_model(ArgumentParser& parser, TextOptions& options) {
  parser.option("model", options.model, "DIR", "Hugging Face folder: config.json, model*.safetensors, tokenizer.json",
                ArgumentParser::Need::required);
}

void declare_sampling(ArgumentParser& parser, TextOptions& options) {
  parser.option("max_tokens", options.max_tokens, "N", "most new tokens", {1, 1'000'000});
  parser.option("temperature", options.temperature, "X", "of sampling; 0 is greedy");
  parser.option("top_k", options.top_k, "N", "sample from the N most likely tokens; 0: all", {0, 1'000'000'000});
  parser.option("top_p", options.top_p, "X", "sample from the fewest tokens with this probability together");
  parser.flag("greedy", options.greedy, "always the most likely token");
  parser.option("seed", options.seed, "N", "same seed, same text");
}

void declare_machine(ArgumentParser& parser, TextOptions& options) {
  parser.option("tokenizer", options.tokenizer, "auto|byte|PATH", "auto: the model folder's");
  parser.choice("backend", options.backend, {"cpu", "cuda"}, "compute backend");
  parser.option("threads", options.threads, "N", "threads to use", {1, 1024});
}

}  // namespace lamina
