// `lamina generate`: continues a text on standard output as it comes.
#include "commands.hpp"
#include "local_model.hpp"
#include "run_inputs.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <lamina/base/error.hpp>
#include <lamina/config/argument_parser.hpp>
#include <lamina/model/generator.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

struct GenerateArguments {
  std::string model, prompt, tokenizer = "auto", backend = "cpu";
  std::int64_t max_tokens = 200, top_k = 0, threads = 1;
  double temperature = 0.8, top_p = 0.95;
  std::uint64_t seed = 0;
  bool greedy = false, ignore_eos = false, quiet = false;
};

std::optional<std::string> parse(GenerateArguments& a, const std::vector<std::string>& arguments) {
  ArgumentParser parser("lamina generate", "Continues a prompt with a model and prints the text as it comes.");
  parser.option("model", a.model, "DIR", "Hugging Face folder: config.json, model*.safetensors, tokenizer.json",
                ArgumentParser::Need::required);
  parser.option("prompt", a.prompt, "TEXT", "the text to continue", ArgumentParser::Need::required);
  parser.option("max_tokens", a.max_tokens, "N", "most new tokens", {1, 1'000'000});
  parser.option("temperature", a.temperature, "X", "of sampling; 0 is greedy");
  parser.option("top_k", a.top_k, "N", "sample from the N most likely tokens; 0: all", {0, 1'000'000'000});
  parser.option("top_p", a.top_p, "X", "sample from the fewest tokens with this probability together");
  parser.flag("greedy", a.greedy, "always the most likely token");
  parser.option("seed", a.seed, "N", "same seed, same text");
  parser.option("tokenizer", a.tokenizer, "auto|byte|PATH", "auto: the model folder's, else byte");
  parser.flag("ignore_eos", a.ignore_eos, "go on after an end-of-text token");
  parser.flag("quiet", a.quiet, "only the text, no summary on standard error");
  parser.choice("backend", a.backend, {"cpu", "cuda"}, "compute backend");
  parser.option("threads", a.threads, "N", "threads to use", {1, 1024});
  return parser.parse(arguments);
}

const char* reason_text(StopReason reason) {
  switch (reason) {
    case StopReason::eos:
      return "end of text";
    case StopReason::max_new_tokens:
      return "max_tokens reached";
    case StopReason::max_positions:
      return "the model has no more positions";
    case StopReason::callback:
      return "output closed";
  }
  return "?";
}

}  // namespace

int generate_command(const std::vector<std::string>& arguments) {
  GenerateArguments a;
  if (const auto text = parse(a, arguments)) {
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  Backend backend = make_backend(a.backend, a.threads);
  const TokenizerChoice choice = choose_tokenizer(a.tokenizer, a.model);
  const LoadedModel model = load_model(a.model, *backend.device);
  const std::vector<std::int32_t> prompt = choice.tokenizer.encode(a.prompt, true);
  if (prompt.empty())
    throw UsageError(one_line("the prompt holds no token", "there is nothing to continue", "give some text"));
  const std::int64_t wanted = static_cast<std::int64_t>(prompt.size()) + a.max_tokens;
  Generator generator(model, *backend.device, *backend.ops, std::min(wanted, model.plan.config.max_positions));

  GenerateOptions options;
  options.max_new_tokens = a.max_tokens;
  options.sampling = {a.greedy ? 0.0 : a.temperature, a.top_k, a.top_p, a.seed};
  options.stop_at_eos = !a.ignore_eos;
  StreamDecoder decoder(choice.tokenizer, true);
  const auto write = [](const std::string& text) {
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  };
  write(a.prompt);
  const auto begin = std::chrono::steady_clock::now();
  const Generated result =
      generator.generate(prompt, options, [&](std::int32_t token) { return write(decoder.push(token)); });
  write(decoder.finish() + "\n");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!a.quiet) {
    fmt::print(stderr, "[{} prompt tokens, {} new in {:.1f} s ({:.0f} tok/s); {}]\n", prompt.size(),
               result.tokens.size(), seconds, static_cast<double>(result.tokens.size()) / std::max(seconds, 1e-9),
               reason_text(result.reason));
  }
  return 0;
}

}  // namespace lamina
