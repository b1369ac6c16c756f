#include "scoring.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

Scorer::Scorer(const LoadedModel& model, Backend& backend, std::int64_t sequences, std::int64_t seq_len)
    : model_(model), runner_(model.plan, *backend.device, *backend.ops, sequences, seq_len, false), seq_len_(seq_len) {}

void Scorer::add(const MicroBatch& batch, Loss& loss) {
  runner_.begin(batch);
  for (const Stage& stage : model_.plan.stages) {
    if (stage.kind == StageKind::head) {
      runner_.forward_head(stage, model_.weights(stage), nullptr);
    } else {
      runner_.forward(stage, model_.weights(stage));
    }
  }
  loss.sum.add(runner_.loss_sum());
  loss.tokens += runner_.labelled_tokens();
}

double Scorer::log_likelihood(std::span<const std::int32_t> context, std::span<const std::int32_t> continuation) {
  require(!context.empty() && !continuation.empty(), "log_likelihood: context and continuation hold tokens");
  std::vector<std::int32_t> tokens(context.begin(), context.end());
  tokens.insert(tokens.end(), continuation.begin(), continuation.end());
  std::vector<std::int32_t> labels(tokens.begin() + 1, tokens.end());
  std::fill_n(labels.begin(), context.size() - 1, no_label);
  tokens.pop_back();
  require(static_cast<std::int64_t>(tokens.size()) <= seq_len_, "log_likelihood: the tokens fit");
  Loss loss;
  add({1, static_cast<std::int64_t>(tokens.size()), tokens, labels}, loss);
  return -loss.sum.value();
}

namespace {

struct EncodedChoice {
  std::vector<std::int32_t> context, continuation;
};

// As lm-evaluation-harness splits them: spaces at the end of the context belong to the continuation, and the
// continuation's tokens are those that the context's own tokens leave over. An empty context is the beginning-of-text
// token, or the end-of-text one.
EncodedChoice encode(const MultipleChoice& question, const std::string& choice, const Tokenizer& tokenizer) {
  const std::size_t end = question.context.find_last_not_of(" \t\n\r\f\v");
  const std::string context = end == std::string::npos ? "" : question.context.substr(0, end + 1);
  const std::string continuation = question.context.substr(context.size()) + choice;
  EncodedChoice result{tokenizer.encode(context, false), {}};
  const std::vector<std::int32_t> whole = tokenizer.encode(context + continuation, false);
  const std::size_t split = std::min(result.context.size(), whole.size());
  result.continuation.assign(whole.begin() + static_cast<std::ptrdiff_t>(split), whole.end());
  if (result.context.empty()) {
    const auto start = tokenizer.bos() ? tokenizer.bos() : tokenizer.eos();
    if (!start) {
      throw DataError(one_line("a question has an empty context",
                               "the tokenizer names no beginning-of-text token to start from",
                               "give every question a context"));
    }
    result.context.push_back(*start);
  }
  if (result.continuation.empty()) {
    throw DataError(one_line(fmt::format("the choice '{}' adds no token to its context", choice), "it cannot be scored",
                             "let choices begin with the space or text that separates them"));
  }
  return result;
}

std::size_t characters(const std::string& utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::int64_t longest_choice(std::span<const MultipleChoice> questions, const Tokenizer& tokenizer, std::int64_t vocab) {
  std::size_t longest = 0;
  for (const MultipleChoice& question : questions) {
    for (const std::string& choice : question.choices) {
      const EncodedChoice encoded = encode(question, choice, tokenizer);
      for (const auto* ids : {&encoded.context, &encoded.continuation}) {
        check_token_ids(*ids, vocab, tokenizer, fmt::format("the choice '{}' and its context", choice));
      }
      longest = std::max(longest, encoded.context.size() + encoded.continuation.size());
    }
  }
  return static_cast<std::int64_t>(longest);
}

ChoiceScores score_choices(std::span<const MultipleChoice> questions, const Tokenizer& tokenizer, Scorer& scorer,
                           const std::function<void(std::int64_t questions)>& progress) {
  ChoiceScores scores;
  std::int64_t right = 0, right_normalised = 0;
  for (const MultipleChoice& question : questions) {
    std::vector<double> plain, normalised;
    for (const std::string& choice : question.choices) {
      const EncodedChoice encoded = encode(question, choice, tokenizer);
      plain.push_back(scorer.log_likelihood(encoded.context, encoded.continuation));
      normalised.push_back(plain.back() / static_cast<double>(characters(choice)));
    }
    const auto best = [](const std::vector<double>& values) {
      return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
    };
    right += best(plain) == question.answer ? 1 : 0;
    right_normalised += best(normalised) == question.answer ? 1 : 0;
    ++scores.questions;
    if (progress) progress(scores.questions);
  }
  scores.accuracy = static_cast<double>(right) / static_cast<double>(questions.size());
  scores.accuracy_normalised = static_cast<double>(right_normalised) / static_cast<double>(questions.size());
  return scores;
}

}  // namespace lamina
