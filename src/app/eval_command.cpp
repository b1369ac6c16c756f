// `lamina eval`: how well a model predicts a text, or answers multiple-choice questions.
#include "commands.hpp"
#include "local_model.hpp"
#include "progress_line.hpp"
#include "run_inputs.hpp"
#include "scoring.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <unordered_map>

#include <lamina/base/error.hpp>
#include <lamina/base/log.hpp>
#include <lamina/config/argument_parser.hpp>
#include <lamina/data/text_rule_options.hpp>
#include <lamina/data/tokenizer_identity.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lamina {

namespace {

struct EvalArguments {
  std::string model, data, choices, tokenizer = "auto", bin_dtype = "auto", backend = "cpu";
  std::int64_t seq_len = 0, batch = 1, max_windows = 0, threads = 1;
  bool json = false, append_eos = true;
  TextRules rules;
  std::string ignore_keys;
};

std::optional<std::string> parse(EvalArguments& a, const std::vector<std::string>& arguments) {
  ArgumentParser parser(
      "lamina eval",
      "Mean loss, perplexity and bits per byte of a model on data, in windows as transformers computes a loss from "
      "labels; or its accuracy on multiple-choice questions, as lm-evaluation-harness defines it.");
  parser.example("lamina eval --model runs/first/model --data inputs/king_james_validation.txt");
  parser.example("lamina eval --model runs/first/model --choices questions.jsonl --json");
  parser.option("model", a.model, "DIR", "Hugging Face folder", ArgumentParser::Need::required);
  parser.option("data", a.data, "FILE", "text, JSONL or tokens, as data.validation of lamina train");
  parser.option("choices", a.choices, "FILE", "JSONL of {\"context\", \"choices\", \"answer\"}");
  parser.option("seq_len", a.seq_len, "N", "tokens of a window; 0: 512, or the model's positions if they are fewer",
                {0, 1'000'000'000});
  parser.option("batch", a.batch, "N", "windows computed at once", {1, 4096});
  parser.option("max_windows", a.max_windows, "N", "only the first N windows; 0: all", {0, 1'000'000'000});
  parser.option("tokenizer", a.tokenizer, "auto|byte|PATH", "auto: the model folder's");
  parser.choice("bin_dtype", a.bin_dtype, {"auto", "uint16", "uint32"}, "tokens of a .bin without header, as in train");
  parser.option("append_eos", a.append_eos, "every text of a .jsonl file ends with the tokenizer's end-of-text token");
  add_text_rule_options(parser, '_', a.rules, a.ignore_keys);
  parser.flag("json", a.json, "print one JSON object");
  parser.choice("backend", a.backend, {"cpu", "cuda"}, "compute backend");
  parser.option("threads", a.threads, "N", "threads to use", {1, 1024});
  auto text = parser.parse(arguments);
  a.rules.ignored_keys = parse_key_list(a.ignore_keys);
  if (!text && a.seq_len == 1) {
    throw UsageError(one_line("--seq_len is 1", "a window of one token has nothing to predict", "give 2 or more"));
  }
  if (!text && a.data.empty() == a.choices.empty()) {
    throw UsageError(one_line("lamina eval needs either --data or --choices",
                              a.data.empty() ? "neither is given" : "both are given", "give one of them"));
  }
  return text;
}

// What is chosen when nobody says.
std::int64_t window_length(const EvalArguments& a, const ModelConfig& config) {
  return a.seq_len > 0 ? a.seq_len : std::min<std::int64_t>(512, config.max_positions);
}

void require_positions(const ModelConfig& config, std::int64_t tokens, const std::string& what) {
  if (tokens <= config.max_positions) return;
  throw UsageError(one_line(fmt::format("{} needs {} tokens", what, tokens),
                            fmt::format("the model has {} positions", config.max_positions),
                            "use shorter windows or questions"));
}

BinDtype dtype_of(const EvalArguments& a) {
  if (a.bin_dtype == "auto") return BinDtype::automatic;
  return a.bin_dtype == "uint16" ? BinDtype::uint16 : BinDtype::uint32;
}

// Tokens can be judged without their tokenizer, text cannot.
MissingTokenizer when_missing(const EvalArguments& a) {
  const bool text = a.data.empty() || needs_tokenizer(parse_mixture(a.data, "--data"));
  return text ? MissingTokenizer::refuse : MissingTokenizer::bytes;
}

// Bytes of text that the labelled targets stand for: each token's own, so that the sum does not depend on how windows
// are grouped or where they are cut.
class TargetBytes {
 public:
  explicit TargetBytes(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  void add(const TokenBatch& batch) {
    for (const std::int32_t label : batch.labels) {
      if (label != no_label) sum_ += bytes_of(label);
    }
  }
  [[nodiscard]] std::int64_t sum() const { return sum_; }

 private:
  std::int64_t bytes_of(std::int32_t id) {
    const auto [entry, is_new] = known_.try_emplace(id, 0);
    if (is_new) entry->second = tokenizer_.text_bytes(id);
    return entry->second;
  }

  const Tokenizer& tokenizer_;
  std::unordered_map<std::int32_t, std::int64_t> known_;
  std::int64_t sum_ = 0;
};

bool made_of_bytes(const std::vector<std::unique_ptr<TokenSource>>& sources) {
  const std::string bytes = identify_tokenizer("byte").hash;
  return std::ranges::all_of(sources, [&](const auto& source) { return source->tokenizer_hash() == bytes; });
}

nlohmann::ordered_json evaluate_data(const EvalArguments& a, const LoadedModel& model, Backend& backend,
                                     const TokenizerChoice& choice) {
  const Tokenizer& tokenizer = choice.tokenizer;
  const std::int64_t seq_len = window_length(a, model.plan.config);
  require_positions(model.plan.config, seq_len, "a window");
  const SourceOptions options(&tokenizer, {dtype_of(a), model.plan.config.vocab_size, "--bin_dtype"}, a.append_eos,
                              a.rules);
  const auto sources = open_mixture(parse_mixture(a.data, "--data"), options);
  for (const auto& source : sources)
    check_token_ids(*source, model.plan.config.vocab_size, choice.assumed ? nullptr : &tokenizer);
  const EvalBatches batches(sources, seq_len, {model.plan.config.vocab_size, false}, WindowLabels::inside_window,
                            static_cast<std::uint64_t>(a.max_windows));
  const std::uint64_t unlabelled = batches.windows_without_label();
  if (unlabelled > 0)
    log_warn(fmt::format("{} of {} windows have no label: they do not count", unlabelled, batches.windows()));
  Scorer scorer(model, backend, a.batch, seq_len);
  Scorer::Loss loss;
  TargetBytes bytes(tokenizer);
  TokenBatch batch;
  ProgressLine progress("windows");
  for (std::uint64_t first = 0; first < batches.windows(); first += static_cast<std::uint64_t>(a.batch)) {
    batches.fill(first, a.batch, batch);
    scorer.add(view_of(batch), loss);
    bytes.add(batch);
    const std::uint64_t done = std::min(first + static_cast<std::uint64_t>(a.batch), batches.windows());
    progress.show(static_cast<std::int64_t>(done), static_cast<std::int64_t>(batches.windows()));
  }
  const double mean = loss.sum.value() / static_cast<double>(loss.tokens);
  nlohmann::ordered_json result{{"loss", mean},
                                {"perplexity", std::exp(mean)},
                                {"bits_per_byte", loss.sum.value() / std::numbers::ln2 /
                                                      static_cast<double>(std::max<std::int64_t>(bytes.sum(), 1))},
                                {"tokens", loss.tokens},
                                {"bytes", bytes.sum()},
                                {"windows", batches.windows()}};
  // How many bytes tokens stand for only their tokenizer knows.
  if (choice.assumed && !made_of_bytes(sources)) result["bits_per_byte"] = result["bytes"] = nullptr;
  return result;
}

nlohmann::ordered_json evaluate_choices(const EvalArguments& a, const LoadedModel& model, Backend& backend,
                                        const Tokenizer& tokenizer) {
  const std::vector<MultipleChoice> questions = read_multiple_choice(a.choices);
  const std::int64_t longest = longest_choice(questions, tokenizer, model.plan.config.vocab_size);
  require_positions(model.plan.config, longest, "the longest question");
  Scorer scorer(model, backend, 1, longest);
  ProgressLine progress("questions");
  const ChoiceScores scores = score_choices(questions, tokenizer, scorer,
                                            [&](std::int64_t done) { progress.show(done, std::ssize(questions)); });
  return {{"questions", scores.questions}, {"acc", scores.accuracy}, {"acc_norm", scores.accuracy_normalised}};
}

}  // namespace

int eval_command(const std::vector<std::string>& arguments) {
  EvalArguments a;
  if (const auto text = parse(a, arguments)) {
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  Backend backend = make_backend(a.backend, a.threads);
  const TokenizerChoice choice = choose_tokenizer(a.tokenizer, a.model, when_missing(a));
  const LoadedModel model = load_model(a.model, *backend.device);
  const nlohmann::ordered_json result =
      a.data.empty() ? evaluate_choices(a, model, backend, choice.tokenizer) : evaluate_data(a, model, backend, choice);
  if (a.json) {
    fmt::print("{}\n", result.dump());
    return 0;
  }
  for (const auto& [key, value] : result.items()) {
    if (value.is_number_float()) {
      fmt::print("{:<14} {:.6f}\n", key, value.get<double>());
    } else {
      fmt::print("{:<14} {}\n", key, value.dump());
    }
  }
  return 0;
}

}  // namespace lamina
