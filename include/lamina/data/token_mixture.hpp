// One or several token sources, cut into windows, as one sequence of samples or one fixed order.
//
// A source of n tokens holds (n - 1) / seq_len windows: window w is tokens [w*seq_len, (w+1)*seq_len) and the token
// after them, which is the last one's target. What is left at the end of a source, fewer than seq_len tokens, is not
// trained on; `unused_tokens` counts it. Without weights all sources together are one stream (every window once an
// epoch); with weights each is a stream of its own (sampler.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/data/sampler.hpp>
#include <lamina/data/token_source.hpp>

namespace lamina {

class Tokenizer;

struct MixtureEntry {
  std::filesystem::path path;
  std::optional<double> weight;
};

// "a.h5" or "a.h5, b.h5" or "a.h5:0.7, b.h5:0.3". A weight is what follows the last colon if it is a number; all
// entries have one or none has. A name with commas or such a colon stands between double quotes ("\"a, b.h5\":0.7"), or
// is recognised: where a part names no file but the whole does, it is the whole. Throws UsageError, calling the text
// `key` ("data.train").
[[nodiscard]] std::vector<MixtureEntry> parse_mixture(std::string_view text, std::string_view key);

// Opens every entry; text needs a tokenizer, which may be null otherwise.
[[nodiscard]] std::vector<std::unique_ptr<TokenSource>> open_mixture(std::span<const MixtureEntry> entries,
                                                                     const SourceOptions& options);

// Whether any entry is text.
[[nodiscard]] bool needs_tokenizer(std::span<const MixtureEntry> entries);

class TokenMixture {
 public:
  // Owns the sources, one for each entry. A source without a whole window is a DataError with the numbers; an `end`
  // that does not fit them is a UsageError.
  TokenMixture(std::span<const MixtureEntry> entries, std::vector<std::unique_ptr<TokenSource>> sources,
               std::int64_t seq_len, std::uint64_t seed, const EpochEnd& end = {});

  struct Place {
    const TokenSource* source;  // null: padding, a row without labels
    std::int64_t first;         // token
  };
  // Window of a sample of the run.
  [[nodiscard]] Place sample(std::uint64_t index) const;

  // DataSampler::begin_anew.
  void begin_anew(std::uint64_t times) { sampler_->begin_anew(times); }
  // Parts of the sum of all weights, one for each source; empty without weights.
  [[nodiscard]] std::span<const double> shares() const { return shares_; }
  [[nodiscard]] std::span<const std::unique_ptr<TokenSource>> sources() const { return sources_; }
  [[nodiscard]] std::int64_t seq_len() const { return seq_len_; }
  [[nodiscard]] std::uint64_t windows() const;  // of all sources
  [[nodiscard]] std::int64_t tokens() const;
  [[nodiscard]] std::int64_t unused_tokens() const;

 private:
  std::vector<std::unique_ptr<TokenSource>> sources_;
  std::int64_t seq_len_;
  bool weighted_;
  std::vector<double> shares_;
  std::vector<std::uint64_t> ends_;  // windows of the sources up to and with each
  std::optional<DataSampler> sampler_;
};

}  // namespace lamina
