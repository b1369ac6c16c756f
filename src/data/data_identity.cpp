#include <algorithm>
#include <vector>

#include <lamina/base/hash.hpp>
#include <lamina/data/data_identity.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lamina {

namespace {

constexpr std::int64_t block_tokens = std::int64_t{1} << 16;

class SourceDigest {
 public:
  explicit SourceDigest(const TokenSource& source) : source_(source) {
    const std::int64_t size = source.size(), blocks = most_identified_tokens / block_tokens;
    if (size <= most_identified_tokens) {
      for (std::int64_t first = 0; first < size; first += block_tokens)
        add(first, std::min(block_tokens, size - first));
    } else {
      // (size - block) * i / (blocks - 1) without overflow
      const std::int64_t last = size - block_tokens, gap = last / (blocks - 1), rest = last % (blocks - 1);
      for (std::int64_t i = 0; i < blocks; ++i) add(gap * i + rest * i / (blocks - 1), block_tokens);
    }
    const auto starts = source.document_starts();
    stream_.update(starts.data(), starts.size_bytes());
  }

  [[nodiscard]] std::uint64_t value() const { return stream_.digest(); }

 private:
  void add(std::int64_t first, std::int64_t count) {
    ids_.resize(static_cast<std::size_t>(count));
    source_.read(first, ids_);
    stream_.update(ids_.data(), ids_.size() * sizeof(ids_[0]));
    if (!source_.has_loss_mask()) return;
    mask_.resize(ids_.size());
    source_.read_loss_mask(first, mask_);
    stream_.update(mask_.data(), mask_.size());
  }

  const TokenSource& source_;
  Xxh3Stream stream_;
  std::vector<std::int32_t> ids_;
  std::vector<std::uint8_t> mask_;
};

std::string identify(std::span<const std::unique_ptr<TokenSource>> sources, std::span<const double> shares) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::string part = fmt::format("{} tokens {:016x}", sources[i]->size(), SourceDigest(*sources[i]).value());
    if (!shares.empty()) part += fmt::format(" x {:.9g}", shares[i]);
    parts.push_back(std::move(part));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string identify_data(const TokenMixture& mixture) { return identify(mixture.sources(), mixture.shares()); }

std::string identify_data(std::span<const std::unique_ptr<TokenSource>> sources) { return identify(sources, {}); }

}  // namespace lamina
