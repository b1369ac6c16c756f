// `lamina generate`: continues a text on standard output as it comes.
#include "commands.hpp"
#include "local_model.hpp"
#include "run_inputs.hpp"
#include "text_options.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <lamina/base/error.hpp>
#include <lamina/model/generator.hpp>
#include <lamina/model/model_config.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

struct GenerateArguments {
  TextOptions text;
  std::string prompt;
  bool ignore_eos = false, quiet = false;
};

std::optional<std::string> parse(GenerateArguments& a, const std::vector<std::string>& arguments) {
  ArgumentParser parser("lamina generate", "Continues a prompt with a model and prints the text as it comes.");
  parser.example("lamina generate --model runs/first/model --prompt \"And it came to pass\"");
  parser.example("lamina generate --model runs/first/model --prompt \"And he said\" --greedy --max_tokens 50 --quiet");
  declare_model(parser, a.text);
  parser.option("prompt", a.prompt, "TEXT", "the text to continue", ArgumentParser::Need::required);
  declare_sampling(parser, a.text);
  parser.flag("ignore_eos", a.ignore_eos, "go on after an end-of-text token");
  parser.flag("quiet", a.quiet, "only the text, no summary on standard error");
  declare_machine(parser, a.text);
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
  static_cast<void>(read_model_config(a.text.model));  // what is no model is told before its tokenizer is missed
  Backend backend = make_backend(a.text.backend, a.text.threads);
  const TokenizerChoice choice = choose_tokenizer(a.text.tokenizer, a.text.model);
  const LoadedModel model = load_model(a.text.model, *backend.device);
  const std::vector<std::int32_t> prompt = choice.tokenizer.encode(a.prompt, true);
  check_token_ids(prompt, model.plan.config.vocab_size, choice.tokenizer, "the prompt");
  if (prompt.empty())
    throw UsageError(one_line("the prompt holds no token", "there is nothing to continue", "give some text"));
  const std::int64_t wanted = static_cast<std::int64_t>(prompt.size()) + a.text.max_tokens;
  Generator generator(model, *backend.device, *backend.ops, std::min(wanted, model.plan.config.max_positions));

  GenerateOptions options;
  options.max_new_tokens = a.text.max_tokens;
  options.sampling = a.text.sampling();
  options.stop_at_eos = !a.ignore_eos;
  StreamDecoder decoder(choice.tokenizer, true);
  decoder.continue_after(prompt);
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
