// Loss of texts under a model in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <lamina/backends/backend.hpp>
#include <lamina/data/batch.hpp>
#include <lamina/data/multiple_choice.hpp>
#include <lamina/model/loaded_model.hpp>
#include <lamina/model/model_runner.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

namespace lamina {

class Scorer {
 public:
  // For micro-batches of up to sequences x seq_len tokens. References must outlive it.
  Scorer(const LoadedModel& model, Backend& backend, std::int64_t sequences, std::int64_t seq_len);

  struct Loss {
    ExactSum sum;  // natural log
    std::int64_t tokens = 0;
  };
  // Adds a batch's labelled tokens.
  void add(const MicroBatch& batch, Loss& loss);
  // log p(continuation | context). The context is not empty; both together fit seq_len + 1 tokens.
  [[nodiscard]] double log_likelihood(std::span<const std::int32_t> context,
                                      std::span<const std::int32_t> continuation);

 private:
  const LoadedModel& model_;
  ModelRunner runner_;
  std::int64_t seq_len_;
};

// Accuracy as lm-evaluation-harness defines it for multiple choice.
struct ChoiceScores {
  std::int64_t questions = 0;
  double accuracy = 0;             // highest log-likelihood wins
  double accuracy_normalised = 0;  // highest log-likelihood per character of the choice wins
};

// The most tokens (context and one choice) that any question needs.
[[nodiscard]] std::int64_t longest_choice(std::span<const MultipleChoice> questions, const Tokenizer& tokenizer,
                                          std::int64_t vocab);
[[nodiscard]] ChoiceScores score_choices(std::span<const MultipleChoice> questions, const Tokenizer& tokenizer,
                                         Scorer& scorer,
                                         const std::function<void(std::int64_t questions)>& progress = {});

}  // namespace lamina
