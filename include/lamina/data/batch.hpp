// Windows of tokens as what a model's micro-batch takes: tokens, labels, and with a document mask positions and first
// visible positions.
//
// The label of a position is the token after it, or no_label: after the end of the data, in padding, where the source's
// loss mask excludes the target, and with `document_mask` where the target begins another document. With
// `document_mask` positions restart at every document and `first_visible` is the first position of the row that belongs
// to the same document.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <lamina/data/token_mixture.hpp>
#include <lamina/data/token_source.hpp>

namespace lamina {

// A position without a target; equal to ops' ignored_label.
inline constexpr std::int32_t no_label = -100;

// Rows of seq_len each, one after another. `positions` and `first_visible` are empty without a document mask.
struct TokenBatch {
  std::int64_t sequences = 0;
  std::int64_t seq_len = 0;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> first_visible;
  std::int64_t labelled = 0;  // labels that are not no_label
};

struct BatchRules {
  std::int64_t vocab = 0;  // the model's; an id beyond it is a DataError with its place
  bool document_mask = false;
};

// Throws DataError if `rules` need what a source does not know (document boundaries).
void check_batch_rules(const TokenSource& source, const BatchRules& rules);

// Training: samples of a mixture.
class TrainBatches {
 public:
  // `mixture` must outlive it.
  TrainBatches(const TokenMixture& mixture, const BatchRules& rules);
  // Samples [first, first + count) of the run; padding samples are rows of token 0 and no_label. Buffers are reused;
  // nothing is allocated from the second call of a size on.
  void fill(std::uint64_t first, std::int64_t count, TokenBatch& batch) const;
  // Windows of the mixture that have no label at all: nothing is learned from them. A source without a single label is
  // a DataError. Reads the loss masks.
  [[nodiscard]] std::uint64_t windows_without_label() const;

 private:
  const TokenMixture* mixture_;
  BatchRules rules_;
};

// Where the labels of an evaluation window end.
enum class WindowLabels {
  next_token,  // windows of seq_len labels; the last label is the token after the window: every token but the first is
               // a target
  inside_window  // seq_len - 1 labels: no target outside the window, as Hugging Face models compute a loss from
                 // `labels`
};

// Evaluation: all windows of some sources in their order, each token a target once. The last window of a source may be
// shorter; it is padded with token 0 and no_label.
class EvalBatches {
 public:
  // At most `most_windows` windows; 0: all. Sources without any target are DataErrors. `sources` must outlive it.
  EvalBatches(std::span<const std::unique_ptr<TokenSource>> sources, std::int64_t seq_len, const BatchRules& rules,
              WindowLabels labels, std::uint64_t most_windows);

  [[nodiscard]] std::uint64_t windows() const { return windows_; }
  // Windows that have no label at all. If that is all of them: DataError. Reads the loss masks.
  [[nodiscard]] std::uint64_t windows_without_label() const;
  // Windows [first, first + count); those from windows() on are padding without a label.
  void fill(std::uint64_t first, std::int64_t count, TokenBatch& batch) const;

 private:
  // A window's source, first token, tokens, and how many of them may have a label.
  struct Window {
    const TokenSource* source;
    std::int64_t first, length, targets;
  };
  [[nodiscard]] Window window(std::uint64_t index) const;

  std::span<const std::unique_ptr<TokenSource>> sources_;
  std::int64_t seq_len_;
  BatchRules rules_;
  WindowLabels labels_;
  std::vector<std::uint64_t> ends_;  // windows of the sources up to and with each
  std::uint64_t windows_ = 0;
};

}  // namespace lamina
