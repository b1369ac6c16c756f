#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/base/text.hpp>
#include <lamina/data/token_mixture.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// An entry's text with its quotes taken away. `quoted` is where the quoted path ends in it; 0: nothing is quoted.
struct EntryText {
  std::string text;
  std::size_t quoted = 0;
};

// Takes the next entry off `rest`, and its comma. Between double quotes commas and colons are a name's own, and a
// backslash takes the character behind it as it is.
EntryText take_entry(std::string_view& rest, std::string_view key) {
  EntryText out;
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  if (rest.starts_with('"')) {
    std::size_t at = 1;
    for (; at < rest.size() && rest[at] != '"'; ++at) {
      if (rest[at] == '\\' && at + 1 < rest.size()) ++at;
      out.text += rest[at];
    }
    if (at >= rest.size()) {
      throw UsageError(one_line(fmt::format("{}: a quote is open", key),
                                "a name begins with \" and does not end with it", "write \" behind the name"));
    }
    out.quoted = out.text.size();
    rest.remove_prefix(at + 1);
  }
  const std::size_t comma = std::min(rest.find(','), rest.size());
  out.text += trim(rest.substr(0, comma));
  rest.remove_prefix(comma);
  return out;
}

MixtureEntry parse_entry(const EntryText& entry, std::string_view key) {
  const std::string_view text = entry.text;
  if (text.empty()) {
    throw UsageError(one_line(fmt::format("{}: empty name", key), "files are separated by commas",
                              "remove a comma, or put a name that has one between double quotes"));
  }
  const std::size_t colon = text.rfind(':');
  if (entry.quoted > 0 && entry.quoted < text.size() && text[entry.quoted] != ':') {
    throw UsageError(one_line(fmt::format("{}: '{}' behind a quoted name", key, text.substr(entry.quoted)),
                              "only a colon and a weight may stand there", "quote the whole name"));
  }
  if (colon == std::string_view::npos || colon < entry.quoted) return {text, std::nullopt};
  const std::optional<double> weight = number(trim(text.substr(colon + 1)));
  const std::string_view path = trim(text.substr(0, colon));
  if (!weight || (entry.quoted == 0 && has_data(text) && !has_data(path))) {
    return {text, std::nullopt};  // a colon inside a file's name
  }
  if (path.empty() || !(*weight > 0) || !std::isfinite(*weight)) {
    throw UsageError(one_line(fmt::format("{}: cannot use '{}'", key, text),
                              "an entry is FILE or FILE:WEIGHT with a weight above 0",
                              "remove the file or give it a weight"));
  }
  return {path, weight};
}

// Whether `text` is one file's name although it has commas: such a file is there, and a part is not.
bool is_one_name(std::string_view text, std::span<const MixtureEntry> entries) {
  const auto missing = [](const MixtureEntry& entry) { return !has_data(entry.path); };
  return entries.size() > 1 && has_data(text) && std::any_of(entries.begin(), entries.end(), missing);
}

std::vector<double> shares_of(std::span<const SampleStream> streams) {
  double sum = 0;
  for (const SampleStream& stream : streams) sum += stream.weight;
  std::vector<double> shares;
  for (const SampleStream& stream : streams) shares.push_back(stream.weight / sum);
  return shares;
}

void check_epoch_end(const EpochEnd& end, std::size_t streams, std::uint64_t windows) {
  const std::string problem = fmt::format("data.last_batch is {}", name_of(end.last_batch));
  if (streams > 1 && end.last_batch != LastBatch::wrap) {
    throw UsageError(one_line(problem + " but data.train has weights",
                              "files with weights go through epochs of their own, which end in no common batch",
                              "set data.last_batch to wrap, or remove the weights"));
  }
  if (samples_an_epoch(windows, end) > 0) return;
  throw UsageError(one_line(fmt::format("{} and an epoch has {} windows, less than train.global_batch = {}", problem,
                                        windows, end.global_batch),
                            "every batch would be left out",
                            "lower train.global_batch, give more data, or set data.last_batch to wrap or pad"));
}

}  // namespace

std::vector<MixtureEntry> parse_mixture(std::string_view text, std::string_view key) {
  std::vector<MixtureEntry> entries;
  for (std::string_view rest = text;; rest.remove_prefix(1)) {
    entries.push_back(parse_entry(take_entry(rest, key), key));
    if (rest.empty()) break;
  }
  if (is_one_name(trim(text), entries)) return {{trim(text), std::nullopt}};
  for (const MixtureEntry& entry : entries) {
    if (entry.weight.has_value() == entries.front().weight.has_value()) continue;
    throw UsageError(
        one_line(fmt::format("{}: {} {} a weight", key, entry.path.string(), entry.weight ? "has" : "has not"),
                 "either every file has one or none has", "write FILE:WEIGHT for all of them"));
  }
  return entries;
}

std::vector<std::unique_ptr<TokenSource>> open_mixture(std::span<const MixtureEntry> entries,
                                                       const SourceOptions& options) {
  std::vector<std::unique_ptr<TokenSource>> sources;
  for (const MixtureEntry& entry : entries) sources.push_back(open_token_source(entry.path, options));
  return sources;
}

bool needs_tokenizer(std::span<const MixtureEntry> entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [](const MixtureEntry& entry) { return needs_tokenizer(entry.path); });
}

TokenMixture::TokenMixture(std::span<const MixtureEntry> entries, std::vector<std::unique_ptr<TokenSource>> sources,
                           std::int64_t seq_len, std::uint64_t seed, const EpochEnd& end)
    : sources_(std::move(sources)),
      seq_len_(seq_len),
      weighted_(!entries.empty() && entries.front().weight.has_value()) {
  require(entries.size() == sources_.size() && !entries.empty() && seq_len >= 1, "one source for each entry");
  std::vector<SampleStream> streams;
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const TokenSource& source = *sources_[i];
    const std::int64_t windows = (source.size() - 1) / seq_len;
    if (source.size() < 1 || windows < 1) {
      throw DataError(one_line(fmt::format("{}: {} tokens are less than one window", source.name(), source.size()),
                               fmt::format("data.seq_len = {} needs {} tokens", seq_len, seq_len + 1),
                               "lower data.seq_len or give more data"));
    }
    all += static_cast<std::uint64_t>(windows);
    ends_.push_back(all);
    streams.push_back({static_cast<std::uint64_t>(windows), entries[i].weight.value_or(1)});
  }
  if (weighted_) shares_ = shares_of(streams);
  if (!weighted_) streams = {{all, 1}};
  check_epoch_end(end, streams.size(), all);
  sampler_.emplace(seed, streams, end);
}

TokenMixture::Place TokenMixture::sample(std::uint64_t index) const {
  const Draw draw = sampler_->at(index);
  if (draw.padding) return {nullptr, 0};
  std::size_t source = draw.stream;
  std::uint64_t window = draw.window;
  if (!weighted_) {
    source = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), window) - ends_.begin());
    if (source > 0) window -= ends_[source - 1];
  }
  return {sources_[source].get(), static_cast<std::int64_t>(window) * seq_len_};
}

std::uint64_t TokenMixture::windows() const { return ends_.back(); }

std::int64_t TokenMixture::tokens() const {
  std::int64_t sum = 0;
  for (const auto& source : sources_) sum += source->size();
  return sum;
}

std::int64_t TokenMixture::unused_tokens() const {
  std::int64_t sum = 0;
  for (const auto& source : sources_) sum += (source->size() - 1) % seq_len_;
  return sum;
}

}  // namespace lamina
