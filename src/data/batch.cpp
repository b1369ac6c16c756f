#include <algorithm>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/data/batch.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

// One row of a batch.
struct Row {
  std::span<std::int32_t> tokens;
  std::span<std::int32_t> labels;
  std::span<std::int32_t> positions;
  std::span<std::int32_t> first_visible;
};

void prepare(TokenBatch& batch, std::int64_t sequences, std::int64_t seq_len, bool document_mask) {
  require(sequences >= 0 && seq_len >= 1, "a batch has a shape");
  const auto size = static_cast<std::size_t>(sequences * seq_len);
  batch.sequences = sequences;
  batch.seq_len = seq_len;
  batch.tokens.resize(size);
  batch.labels.resize(size);
  batch.positions.resize(document_mask ? size : 0);
  batch.first_visible.resize(document_mask ? size : 0);
}

Row row_of(TokenBatch& batch, std::int64_t index) {
  const auto length = static_cast<std::size_t>(batch.seq_len);
  const std::size_t begin = static_cast<std::size_t>(index) * length;
  const auto part = [&](std::vector<std::int32_t>& all) {
    return all.empty() ? std::span<std::int32_t>{} : std::span(all).subspan(begin, length);
  };
  return {part(batch.tokens), part(batch.labels), part(batch.positions), part(batch.first_visible)};
}

void check_ids(const TokenSource& source, std::int64_t first, std::span<const std::int32_t> ids, std::int64_t vocab) {
  const auto wrong = std::find_if(ids.begin(), ids.end(), [&](std::int32_t id) { return id >= vocab; });
  if (wrong == ids.end()) return;
  throw DataError(one_line(
      fmt::format("{}: {} has id {}", source.name(), source.place_of(first + (wrong - ids.begin())), *wrong),
      fmt::format("the model's vocabulary ends at {}", vocab - 1), "use data made with the model's tokenizer"));
}

// Drops labels whose targets the source excludes. Label i is token first + i + 1.
void apply_loss_mask(const TokenSource& source, std::int64_t first, std::span<std::int32_t> labels) {
  if (!source.has_loss_mask() || labels.empty()) return;
  std::vector<std::uint8_t> mask(labels.size());
  source.read_loss_mask(first + 1, mask);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (mask[i] == 0) labels[i] = no_label;
  }
}

// Restarts positions at the documents that begin inside the row of `length` tokens from token `first`, and drops the
// labels that are first tokens of a document.
void apply_document_mask(const TokenSource& source, std::int64_t first, std::int64_t length, const Row& row) {
  const std::span<const std::int64_t> starts = source.document_starts();
  auto next = std::upper_bound(starts.begin(), starts.end(), first);
  std::int32_t begin = 0;
  for (std::int32_t i = 0; i < length; ++i) {
    const auto index = static_cast<std::size_t>(i);
    if (next != starts.end() && *next == first + i) {
      begin = i;
      ++next;
    }
    row.positions[index] = i - begin;
    row.first_visible[index] = begin;
    if (next != starts.end() && *next == first + i + 1) row.labels[index] = no_label;
  }
}

// Padding behind the first `used` tokens: each padded token sees itself only.
void pad(const Row& row, std::size_t used) {
  std::fill(row.tokens.begin() + static_cast<std::ptrdiff_t>(used), row.tokens.end(), 0);
  std::fill(row.labels.begin() + static_cast<std::ptrdiff_t>(used), row.labels.end(), no_label);
  for (std::size_t i = used; i < row.positions.size(); ++i) {
    row.positions[i] = 0;
    row.first_visible[i] = static_cast<std::int32_t>(i);
  }
}

// Row of the tokens from `first` on: `length` of them, of which the first `targets` have a label.
void fill_row(const TokenSource& source, std::int64_t first, std::int64_t length, std::int64_t targets,
              const BatchRules& rules, const Row& row) {
  const auto used = static_cast<std::size_t>(length);
  const std::span<std::int32_t> tokens = row.tokens.first(used);
  source.read(first, tokens);
  check_ids(source, first, tokens, rules.vocab);
  std::copy(tokens.begin() + 1, tokens.end(), row.labels.begin());
  row.labels[used - 1] = no_label;
  if (targets == length) {
    const std::span<std::int32_t> last = row.labels.subspan(used - 1, 1);
    source.read(first + length, last);
    check_ids(source, first + length, last, rules.vocab);
  }
  apply_loss_mask(source, first, row.labels.first(static_cast<std::size_t>(targets)));
  if (rules.document_mask) apply_document_mask(source, first, length, row);
  pad(row, used);
}

void count_labels(TokenBatch& batch) {
  const auto ignored = std::count(batch.labels.begin(), batch.labels.end(), no_label);
  batch.labelled = static_cast<std::int64_t>(batch.labels.size()) - ignored;
}

// Whether any of the `targets` tokens behind token `first` keeps its label in fill_row.
bool has_label(const TokenSource& source, std::int64_t first, std::int64_t targets, const BatchRules& rules) {
  std::span<const std::int64_t> starts;  // of documents among the targets
  if (rules.document_mask) {
    const std::span<const std::int64_t> all = source.document_starts();
    starts = {std::upper_bound(all.begin(), all.end(), first),
              std::upper_bound(all.begin(), all.end(), first + targets)};
  }
  if (std::ssize(starts) >= targets) return false;
  if (!source.has_loss_mask()) return true;
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(targets));
  source.read_loss_mask(first + 1, mask);
  for (const std::int64_t start : starts) mask[static_cast<std::size_t>(start - first - 1)] = 0;
  return std::ranges::any_of(mask, [](std::uint8_t counts) { return counts != 0; });
}

[[noreturn]] void refuse_unlabelled(const std::string& name, std::uint64_t windows, std::int64_t seq_len) {
  throw DataError(one_line(
      fmt::format("{}: no token of its {} windows of {} has a label", name, windows, seq_len),
      "loss masks and document boundaries leave no target, so that there is no loss and nothing to learn",
      "check that the chats have answers of the assistant, and which parts of the lines count; or use longer windows"));
}

}  // namespace

void check_batch_rules(const TokenSource& source, const BatchRules& rules) {
  require(rules.vocab >= 1, "a model has a vocabulary");
  if (!rules.document_mask || !source.document_starts().empty()) return;
  throw DataError(
      one_line(fmt::format("{}: data.document_mask = yes but document boundaries are not known", source.name()),
               fmt::format("{} do not say where documents begin", source.format()),
               "make an HDF5 token set with lamina-tokenize, or set data.document_mask = no"));
}

TrainBatches::TrainBatches(const TokenMixture& mixture, const BatchRules& rules) : mixture_(&mixture), rules_(rules) {
  for (const auto& source : mixture.sources()) check_batch_rules(*source, rules);
}

void TrainBatches::fill(std::uint64_t first, std::int64_t count, TokenBatch& batch) const {
  const std::int64_t seq_len = mixture_->seq_len();
  prepare(batch, count, seq_len, rules_.document_mask);
  for (std::int64_t i = 0; i < count; ++i) {
    const TokenMixture::Place place = mixture_->sample(first + static_cast<std::uint64_t>(i));
    if (place.source == nullptr) {
      pad(row_of(batch, i), 0);
    } else {
      fill_row(*place.source, place.first, seq_len, seq_len, rules_, row_of(batch, i));
    }
  }
  count_labels(batch);
}

std::uint64_t TrainBatches::windows_without_label() const {
  const std::int64_t seq_len = mixture_->seq_len();
  std::uint64_t without = 0;
  for (const auto& source : mixture_->sources()) {
    const std::int64_t windows = (source->size() - 1) / seq_len;
    std::uint64_t of_source = 0;
    for (std::int64_t w = 0; w < windows; ++w) of_source += has_label(*source, w * seq_len, seq_len, rules_) ? 0U : 1U;
    const auto all = static_cast<std::uint64_t>(windows);
    if (all > 0 && of_source == all) refuse_unlabelled(source->name(), all, seq_len);
    without += of_source;
  }
  return without;
}

EvalBatches::EvalBatches(std::span<const std::unique_ptr<TokenSource>> sources, std::int64_t seq_len,
                         const BatchRules& rules, WindowLabels labels, std::uint64_t most_windows)
    : sources_(sources), seq_len_(seq_len), rules_(rules), labels_(labels) {
  require(!sources.empty() && seq_len >= 1, "an evaluation has sources and a window");
  for (const auto& source : sources) {
    check_batch_rules(*source, rules);
    // The last token begins no window of its own: it has no target.
    const std::int64_t windows = (source->size() - 1 + seq_len - 1) / seq_len;
    if (source->size() < 2 || (labels == WindowLabels::inside_window && seq_len < 2)) {
      throw DataError(one_line(fmt::format("{}: no target to predict", source->name()),
                               fmt::format("it has {} tokens and windows have {}", source->size(), seq_len),
                               "give at least 2 tokens and a longer window"));
    }
    windows_ += static_cast<std::uint64_t>(windows);
    ends_.push_back(windows_);
  }
  if (most_windows > 0) windows_ = std::min(windows_, most_windows);
}

void EvalBatches::fill(std::uint64_t first, std::int64_t count, TokenBatch& batch) const {
  prepare(batch, count, seq_len_, rules_.document_mask);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t index = first + static_cast<std::uint64_t>(i);
    const Row row = row_of(batch, i);
    if (index >= windows_) {
      pad(row, 0);
      continue;
    }
    const Window w = window(index);
    fill_row(*w.source, w.first, w.length, w.targets, rules_, row);
  }
  count_labels(batch);
}

EvalBatches::Window EvalBatches::window(std::uint64_t index) const {
  const auto at = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  const TokenSource& source = *sources_[at];
  const auto first = static_cast<std::int64_t>(at > 0 ? index - ends_[at - 1] : index) * seq_len_;
  const std::int64_t length = std::min(seq_len_, source.size() - first);
  const bool next = labels_ == WindowLabels::next_token && first + length < source.size();
  return {&source, first, length, next ? length : length - 1};
}

std::uint64_t EvalBatches::windows_without_label() const {
  std::uint64_t without = 0;
  for (std::uint64_t index = 0; index < windows_; ++index) {
    const Window w = window(index);
    without += has_label(*w.source, w.first, w.targets, rules_) ? 0U : 1U;
  }
  if (without == windows_) refuse_unlabelled(sources_.front()->name(), windows_, seq_len_);
  return without;
}

}  // namespace lamina
